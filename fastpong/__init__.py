"""fastpong learns Atari Pong from pixels with policy gradients, on one ordinary computer.

This module stays light: ``fastpong --help`` and every game subprocess import it.
"""

__version__ = "0.2.0"
