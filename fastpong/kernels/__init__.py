"""Everything compiled: arrays in, arrays out, in the order of the pipeline.

``preprocess`` (screens to lists of pixels, courts to lists of strips) → ``mlp`` (the reference programs' layers), or
``patches`` (which patches are distinct, and where each occurs) and ``conv``, with ``acting`` on top → ``returns`` and
``losses`` → ``epochs`` (all minibatches of a batch) and ``optimiser``. ``structs`` names the arrays that kernels
share, ``sampling`` draws. ``tiles`` and ``gathers`` are vector code of the hidden layer and the convolution,
``compile`` is how kernels are compiled. ``tests/naive.py`` holds a plain float64 twin of each kernel.
"""
