"""``fastpong/Pong-v0`` for gymnasium, from the moment that both are imported, in whichever order.

gymnasium 1 asks nobody for plugins, and to load it takes longer than all else that ``import fastpong`` does. So ids are
registered at once if it is loaded, and else as soon as somebody loads it.
"""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

ID = "fastpong/Pong-v0"


class _Finder:
    """Finds gymnasium as others would, and lets it register the ids when it has been loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Register the ids if gymnasium is loaded and has not got them, or wait for it."""
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is None:
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
    elif hasattr(gymnasium, "register") and ID not in gymnasium.registry:
        gymnasium.register(ID, entry_point="fastpong.gym:PongEnv", vector_entry_point="fastpong.gym:PongVectorEnv")
