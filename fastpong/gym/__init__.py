"""Pong for gymnasium: ``fastpong/Pong-v0``, which `fastpong.registration` registers."""

from fastpong.gym.single import PongEnv
from fastpong.gym.vector import PongVectorEnv

__all__ = ["PongEnv", "PongVectorEnv"]
