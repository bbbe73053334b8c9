"""Pong for gymnasium: to import this registers ``fastpong/Pong-v0``, for `gymnasium.make` and `gymnasium.make_vec`.

gymnasium imports it by itself for ``gymnasium.make_vec("fastpong.gym:fastpong/Pong-v0")``.
"""

import gymnasium

from fastpong.gym.single import PongEnv
from fastpong.gym.vector import PongVectorEnv

__all__ = ["PongEnv", "PongVectorEnv"]

if "fastpong/Pong-v0" not in gymnasium.registry:
    gymnasium.register(
        "fastpong/Pong-v0", entry_point="fastpong.gym:PongEnv", vector_entry_point="fastpong.gym:PongVectorEnv"
    )
