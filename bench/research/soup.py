"""Average the weights of agents fine-tuned from a common one.

    python -m bench.research.soup A.npz B.npz … --shared 64 --out FILE

The weights that they have from it are averaged, as in Wortsman et al., "Model soups: averaging weights of multiple
fine-tuned models improves accuracy without increasing inference time", 2022. Hidden units that each of them got later
(`widen.py` draws them anew) have nothing in common: they stand side by side, and count one part in so many, so
that the logits are about the mean of theirs. Takes what `ship_agent.py` writes. Prints the size.
"""

from pathlib import Path
from typing import Any

import numpy as np

from bench.common import parser
from fastpong.arrays import Arrays
from fastpong.runs.checkpoint import load, save
from fastpong.runs.find import SHIPPED


def joined(agents: list[Arrays], shared: int) -> Arrays:
    """Return the joined weights, float64 by name.

    Parameters
    ----------
    agents : list of dict
        Weights of preset ``fast`` by name: ``policy.kernel``, ``policy.bias``, ``policy.w1`` (7072, hidden) and
        ``policy.w2`` (actions + 1, hidden + 1).
    shared : int
        The first so many hidden units are averaged.
    """

    def mean(arrays: list[Any]) -> Any:
        return np.mean(arrays, axis=0, dtype=np.float64)

    w1, w2 = [agent["policy.w1"] for agent in agents], [agent["policy.w2"] for agent in agents]
    apart = [array[:, shared:-1].astype(np.float64) / len(agents) for array in w2]
    return {
        "policy.kernel": mean([agent["policy.kernel"] for agent in agents]),
        "policy.bias": mean([agent["policy.bias"] for agent in agents]),
        "policy.w1": np.hstack([mean([array[:, :shared] for array in w1]), *(array[:, shared:] for array in w1)]),
        "policy.w2": np.hstack(
            [mean([array[:, :shared] for array in w2]), *apart, mean([array[:, -1:] for array in w2])]
        ),
    }


def main() -> None:
    """Write the file and say how large it is."""
    options = parser(__doc__)
    options.add_argument("agents", type=Path, nargs="+")
    options.add_argument("--shared", type=int, required=True, help="hidden units of the agent they went on from")
    options.add_argument("--out", type=Path, default=SHIPPED)
    arguments = options.parse_args()
    states = [load(path) for path in arguments.agents]
    arrays = joined([weights for weights, _ in states], arguments.shared)
    about = {
        **states[0][1],
        "config": {**states[0][1]["config"], "hidden_units": arrays["policy.w1"].shape[1]},
        "trained_with": "\n\n".join(about["trained_with"] for _, about in states),
        "mean_of": [about.get("mean_of") for _, about in states],
    }
    weights: dict[str, Any] = {name: array.astype(np.float16) for name, array in arrays.items()}
    save(arguments.out, weights, about, compressed=True)
    print(
        f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.2f} MB, {about['config']['hidden_units']} hidden units"
    )


if __name__ == "__main__":
    main()
