"""Make the agent that ships with the package from a run.

    python -m bench.research.ship_agent RUN [--mean N] [--out FILE]

Takes the run's ``best.npz``, or the mean of the weights of its last N checkpoints (as in Izmailov et al., "Averaging
weights leads to wider optima and better generalization", 2018), in half precision and compressed, with inputs that no
training step ever set left out (their weights are still the random ones of the start). Evaluate it afterwards:
``fastpong eval --games 200``. Prints the size. Runs keep two checkpoints: copy
more of them aside, and back into the run's folder, for a mean of more.
"""

from pathlib import Path
from typing import Any

import numpy as np

from bench.common import parser
from fastpong.arrays import Arrays
from fastpong.policy import make_policy
from fastpong.runs.checkpoint import load, save
from fastpong.runs.find import SHIPPED
from fastpong.runs.folder import RunFolder


def mean_of(paths: list[Path]) -> tuple[Arrays, dict[str, Any]]:
    """Return the mean weights of some checkpoints, float64 by name, and what the first of them tells about itself."""
    states = [load(path) for path in paths]
    names = [name for name in states[0][0] if name.startswith("policy.")]
    mean: Arrays = {name: np.asarray(np.mean([state[name] for state, _ in states], 0, np.float64)) for name in names}
    return mean, states[0][1]


def main() -> None:
    """Write the file and say how large it is."""
    options = parser(__doc__)
    options.add_argument("run", type=Path)
    options.add_argument("--mean", type=int, default=0, help="of so many of the last checkpoints; 0: best.npz")
    options.add_argument("--out", type=Path, default=SHIPPED)
    arguments = options.parse_args()
    run, out = RunFolder(arguments.run), arguments.out
    arrays, about = mean_of(run.checkpoints()[: arguments.mean]) if arguments.mean else load(run.best)
    config = run.config()
    start = make_policy(config)
    w1 = arrays["policy.w1"].copy()
    untouched = (w1 == start.weights.arrays["w1"]).all(axis=1)
    w1[untouched] = 0.0
    weights: dict[str, Any] = {name: array.astype(np.float16) for name, array in {**arrays, "policy.w1": w1}.items()}
    about = {**about, "trained_with": (run.path / "config.toml").read_text()}
    if arguments.mean:
        about = {**about, "mean_of": [path.name for path in run.checkpoints()[: arguments.mean]]}
    save(out, weights, about, compressed=True)
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB, {int(untouched.sum())} inputs never set")


if __name__ == "__main__":
    main()
