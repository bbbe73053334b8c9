"""Make the agent that ships with the package from a run: python bench/ship_agent.py RUN.

Takes the run's ``best.npz``, in half precision and compressed, with inputs that no training step ever set left out
(their weights are still the random ones of the start). Evaluate it afterwards: ``fastpong eval --games 200``.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from fastpong.checkpoint import FORMAT, SHIPPED, load, load_weights
from fastpong.policy import make_policy


def main() -> None:
    """Write the file and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run
    arrays, about = load(run / "best.npz")
    start = make_policy(load_weights(run)[0])
    w1 = arrays["policy.w1"].copy()
    untouched = (w1 == start.arrays["w1"]).all(axis=1)
    w1[untouched] = 0.0
    weights: dict[str, Any] = {name: array.astype(np.float16) for name, array in {**arrays, "policy.w1": w1}.items()}
    about = {**about, "format": FORMAT, "trained_with": (run / "config.toml").read_text()}
    np.savez_compressed(
        SHIPPED,
        about=np.array(json.dumps(about)),
        **weights,
    )
    print(f"{SHIPPED}: {SHIPPED.stat().st_size / 1e6:.2f} MB, {int(untouched.sum())} inputs never set")


if __name__ == "__main__":
    main()
