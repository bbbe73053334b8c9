"""fastpong learns Atari Pong from pixels with policy gradients, on one ordinary computer.

    import fastpong

    run = fastpong.train(envs=64, minutes=10)
    fastpong.evaluate(run.best, games=20).mean
    agent = fastpong.load()  # the shipped one

It brings ``fastpong/Pong-v0`` for gymnasium. Names are loaded when they are used: every game subprocess imports this
module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastpong.registration import register

__version__ = "0.2.0"

if TYPE_CHECKING:
    from fastpong.agent import Agent, load
    from fastpong.api import Run, Setting, evaluate, presets, settings, train
    from fastpong.errors import FastpongError, UsageError
    from fastpong.show.events import Event
    from fastpong.training.evaluate import Evaluation

_HOMES = {
    "agent": ("Agent", "load"),
    "api": ("Run", "Setting", "evaluate", "presets", "settings", "train"),
    "errors": ("FastpongError", "UsageError"),
    "training.evaluate": ("Evaluation",),
    "show.events": ("Event",),
}

__all__ = [
    "Agent", "Evaluation", "Event", "FastpongError", "Run", "Setting", "UsageError", "evaluate", "load", "presets",
    "settings", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            if module != "errors":
                import_module("fastpong.system").require_unix()
            value = globals()[name] = getattr(import_module(f"fastpong.{module}"), name)
            return value
    raise AttributeError(f"module 'fastpong' has no attribute {name!r}")


register()


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
