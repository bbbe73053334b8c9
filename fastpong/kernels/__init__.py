"""Everything compiled: arrays in, arrays out, in the order of the pipeline.

``preprocess`` (screens to lists of pixels or strips) → ``mlp`` (the reference programs' two layers), or ``patches``
(which patches are distinct, and where each occurs) and ``conv``, with ``acting`` on top → ``returns`` and ``losses`` →
``update`` (an epoch of minibatches) and ``optimiser``. ``structs`` names the arrays that kernels share, ``noise``
draws. ``tiles`` and ``gathers`` are vector code of the hidden layer and the convolution, ``compile`` is how kernels are
compiled. ``tests/naive.py`` holds a plain float64 twin of each kernel.
"""
