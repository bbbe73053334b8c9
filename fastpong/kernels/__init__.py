"""Everything compiled: arrays in, arrays out, in the order of the pipeline.

``images`` (screens to lists of pixels) → ``network`` (two layers: forward, actions, gradient), or ``convolution`` (on
``tiles``) and ``ppo`` → ``returns`` → ``optimiser``; ``noise`` serves the actions. ``tests/naive.py`` holds a plain
float64 twin of each kernel.
"""
