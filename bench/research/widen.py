"""Go on with a wider network.

    python -m bench.research.widen RUN NEW --hidden 192

Then ``fastpong train --run NEW --resume``. Copies a run's newest checkpoint into a new run folder, with more hidden
units. The new units have random weights of the same deviation as the old ones, and
their outputs have a weight of 0: the agent plays on as it did. As in Chen et al., "Net2Net: accelerating learning via
knowledge transfer", 2016, but for the copies. Prints where the run is.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.common import parser
from fastpong.arrays import F32, Arrays
from fastpong.config import Config, changed
from fastpong.policy import ConvNet
from fastpong.runs.folder import RunFolder


def widened(arrays: Arrays, config: Config, hidden: int, seed: int = 0) -> Arrays:
    """Return a checkpoint's arrays with more hidden units; raises `ValueError` if it has as many already.

    Parameters
    ----------
    arrays : dict
        As `fastpong.training.trainer.Trainer.state` returns them, of a run of preset ``fast``.
    config : Config
        Of that run.
    hidden : int
        Units wanted.
    seed : int
        Of the new units' weights.
    """
    before, wide = config.hidden_units, changed(config, {"hidden_units": hidden})
    if config.algorithm != "ppo" or hidden <= before:
        raise ValueError(f"the network has {before} hidden units; more are for ppo, and have to be more")
    rng, result = np.random.default_rng(seed), dict(arrays)

    def wider(flat: F32, fresh: F32 | None = None) -> ConvNet:
        """Return a network with these weights, flat, and `fresh` (7072, new units) in ``w1``; other new ones are 0."""
        old, new = (ConvNet(c, np.random.default_rng(0)) for c in (config, wide))
        kernel, bias, w1, w2 = new.network
        old.flat[:], new.flat[:] = flat, 0.0
        kernel[:], bias[:], w1[:, :before], w2[:, -1] = *old.network[:3], old.network.w2[:, -1]
        w2[:, :before] = old.network.w2[:, :-1]
        if fresh is not None:
            w1[:, before:] = fresh
        return new

    w1 = arrays["policy.w1"]
    fresh: F32 = rng.standard_normal((len(w1), hidden - before), np.float32) * w1.std()
    flat = np.concatenate([arrays[f"policy.{name}"].reshape(-1) for name in ("kernel", "bias", "w1", "w2")])
    policy = wider(flat, fresh)
    result |= {f"policy.{name}": array for name, array in policy.arrays.items()}
    for name in ("exp_avg", "exp_avg_sq"):
        result[f"learner.{name}"] = wider(arrays[f"learner.{name}"]).flat
    return result


def main() -> None:
    """Copy a run."""
    options = parser(__doc__)
    options.add_argument("run", type=Path)
    options.add_argument("new", type=Path)
    options.add_argument("--hidden", type=int, default=192)
    arguments = options.parse_args()
    run, new = RunFolder(arguments.run), RunFolder(arguments.new)
    config, (arrays, facts, _) = run.config(), run.newest()
    wider, steps = changed(config, {"hidden_units": arguments.hidden}), int(arrays["step"]) * config.num_envs
    arrays = widened(arrays, config, arguments.hidden)
    new.create(wider, {"command": f"bench.research.widen {arguments.run} {arguments.new} --hidden {arguments.hidden}"})
    new.save_checkpoint(arrays, replace(facts, config=wider))
    shutil.copy(run.metrics, new.metrics)
    print(f"{new.path}: {steps:,} steps, {arguments.hidden} hidden units")


if __name__ == "__main__":
    main()
