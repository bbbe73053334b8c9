"""Make the agent that ships with the package from a run: python bench/ship_agent.py RUN [--mean N].

Takes the run's ``best.npz``, or the mean of the weights of its last N checkpoints (as in Izmailov et al., "Averaging
weights leads to wider optima and better generalization", 2018), in half precision and compressed, with inputs that no
training step ever set left out (their weights are still the random ones of the start). Evaluate it afterwards:
``fastpong eval --games 200``. With --out it goes to another file.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from fastpong.checkpoint import FORMAT, SHIPPED, Arrays, RunFolder, load
from fastpong.policy import make_policy


def mean_of(paths: list[Path]) -> tuple[Arrays, dict[str, Any]]:
    """Return the mean weights of some checkpoints, float64 by name, and what the first of them tells about itself."""
    states = [load(path) for path in paths]
    names = [name for name in states[0][0] if name.startswith("policy.")]
    mean: Arrays = {name: np.asarray(np.mean([state[name] for state, _ in states], 0, np.float64)) for name in names}
    return mean, states[0][1]


def main() -> None:
    """Write the file and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--mean", type=int, default=0, help="of so many of the last checkpoints; 0: best.npz")
    parser.add_argument("--out", type=Path, default=SHIPPED)
    arguments = parser.parse_args()
    run, out = RunFolder(arguments.run), arguments.out
    arrays, about = mean_of(run.checkpoints()[: arguments.mean]) if arguments.mean else load(run.best)
    config = run.config()
    start = make_policy(config)
    w1 = arrays["policy.w1"].copy()
    untouched = (w1 == start.arrays["w1"]).all(axis=1)
    w1[untouched] = 0.0
    weights: dict[str, Any] = {name: array.astype(np.float16) for name, array in {**arrays, "policy.w1": w1}.items()}
    about = {**about, "format": FORMAT, "trained_with": (run.path / "config.toml").read_text()}
    if arguments.mean:
        about = {**about, "mean_of": [path.name for path in run.checkpoints()[: arguments.mean]]}
    np.savez_compressed(out, about=np.array(json.dumps(about)), **weights)
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB, {int(untouched.sum())} inputs never set")


if __name__ == "__main__":
    main()
