"""Everything compiled: arrays in, arrays out, in the order of the pipeline.

``images`` (screens to lists of pixels) → ``network`` (two layers: forward, actions, gradient), or ``convolution`` (on
``tiles``), ``ppo`` and ``value`` → ``returns`` → ``optimiser``, and ``passes`` for all of a batch; ``noise`` serves the
actions. ``tests/naive.py`` holds a plain
float64 twin of each kernel.
"""
