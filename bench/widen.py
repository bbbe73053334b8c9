"""Go on with a wider network: python bench/widen.py RUN NEW --hidden 192, then fastpong train --run NEW --resume.

Copies a run's newest checkpoint into a new run folder, with more hidden units for the policy and for the critic. The
new units have random weights of the same deviation as the old ones, and nobody listens to them yet: the agent plays on
as it did. As in Chen et al., "Net2Net: accelerating learning via knowledge transfer", 2016, but for the copies.
"""

import argparse
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastpong.checkpoint import RunFolder
from fastpong.config import Config, changed
from fastpong.policy import shapes, views

Arrays = dict[str, npt.NDArray[Any]]


def widened(arrays: Arrays, config: Config, hidden: int, seed: int = 0) -> Arrays:
    """Return a checkpoint's arrays with more hidden units; raises `ValueError` if it has as many already.

    Parameters
    ----------
    arrays : dict
        As `fastpong.trainer.Trainer.state` returns them, of a run of preset ``fast``.
    config : Config
        Of that run.
    hidden : int
        Units wanted.
    seed : int
        Of the new units' weights.
    """
    if config.algorithm != "ppo" or hidden <= config.hidden:
        raise ValueError(f"the network has {config.hidden} hidden units; more are for ppo, and have to be more")
    rng = np.random.default_rng(seed)
    old, new = shapes(config), shapes(changed(config, {"hidden": hidden}))

    def wider(flat: npt.NDArray[Any], outputs: int, fresh: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Make a flat buffer that lies in memory like the weights wider; `fresh` (7072, new units) go into ``w1``."""
        before = views({**old, "w2": (outputs, config.hidden + 1)}, flat)
        into = {**new, "w2": (outputs, hidden + 1)}
        result = np.zeros(sum(int(np.prod(shape)) for shape in into.values()), np.float32)
        after = views(into, result)
        after["kernel"][:], after["bias"][:] = before["kernel"], before["bias"]
        after["w1"][:, : config.hidden] = before["w1"]
        if fresh is not None:
            after["w1"][:, config.hidden :] = fresh
        after["w2"][:, : config.hidden], after["w2"][:, -1] = before["w2"][:, :-1], before["w2"][:, -1]
        return result

    def drawn(w1: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return rng.standard_normal((len(w1), hidden - config.hidden), np.float32) * np.float32(w1.std())

    result, actions = dict(arrays), config.actions + 1
    flat = np.concatenate([arrays[f"policy.{name}"].reshape(-1) for name in old])
    weights = views(new, wider(flat, actions, drawn(arrays["policy.w1"])))
    result |= {f"policy.{name}": array for name, array in weights.items()}
    result |= {f"learner.{name}": wider(arrays[f"learner.{name}"], actions, None) for name in ("mean", "square")}
    if config.critic:
        values = arrays["learner.critic_weights"]
        fresh = drawn(views({**old, "w2": (1, config.hidden + 1)}, values)["w1"])
        for name in ("weights", "means", "mean", "square"):
            own = fresh if name in ("weights", "means") else None
            result[f"learner.critic_{name}"] = wider(arrays[f"learner.critic_{name}"], 1, own)
    return result


def main() -> None:
    """Copy a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--hidden", type=int, default=192)
    arguments = parser.parse_args()
    run, new = RunFolder(arguments.run), RunFolder(arguments.new)
    config, (arrays, about, _) = run.config(), run.newest()
    wider, steps = changed(config, {"hidden": arguments.hidden}), int(arrays["step"]) * config.envs
    arrays = widened(arrays, config, arguments.hidden)
    new.create(wider, {"command": f"bench/widen.py {arguments.run} {arguments.new} --hidden {arguments.hidden}"})
    new.save_checkpoint(steps, 1, arrays, {**about, "config": asdict(wider)})
    shutil.copy(run.metrics, new.metrics)
    print(f"{new.path}: {steps:,} steps, {arguments.hidden} hidden units")


if __name__ == "__main__":
    main()
