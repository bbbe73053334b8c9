"""Everything compiled: arrays in, arrays out, in the order of the pipeline.

``images`` (screens to lists of pixels) → ``network`` (two layers: forward, actions, gradient), or ``sites`` (what is
seen where) and ``convolution`` (on ``tiles`` and ``gathers``, both made of ``vectors``) with ``acting`` on top →
``outcomes`` → ``returns``, ``ppo`` and ``value`` → ``optimiser``. ``passes`` go over a batch, as ``records`` tell them,
on two threads and their ``meeting``; ``noise`` serves the actions. ``tests/naive.py`` holds a plain float64 twin of
each kernel.
"""
