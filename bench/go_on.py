"""Go on from an agent: python bench/go_on.py AGENT RUN [--greed 0.5] [--set key=value …].

Then ``fastpong train --run RUN --resume``. The run begins with the weights of an agent, such as the one that ships
(``fastpong/agent.npz``), where the run that it comes from is gone: the optimiser remembers nothing, the critic knows
nothing, and the agent counts as one that has won. Its logits may be multiplied by --greed, so that it tries more at
first. Settings are the agent's own but for those that are set.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import numpy as np

from fastpong.checkpoint import RunFolder, load_weights
from fastpong.config import Config, changed
from fastpong.games import Games
from fastpong.shards import Arrays
from fastpong.trainer import Trainer


def begun(config: Config, weights: Arrays, greed: float) -> Arrays:
    """Return the state of a run, see `fastpong.trainer.Trainer.state`, before its first step.

    Parameters
    ----------
    config : Config
        Of the run, preset ``fast``.
    weights : dict
        By name, see `fastpong.policy.shapes`: those of `config`.
    greed : float
        What the logits are multiplied by.
    """
    with Games(config.envs, 1, config.seed, config.frame_skip, config.sticky, config.actions) as games:
        trainer = Trainer(config, games)
        trainer.start()
        state = trainer.state()
    state |= {f"policy.{name}": np.asarray(array, np.float32) for name, array in weights.items()}
    state["policy.w2"][: config.actions] *= np.float32(greed)
    return state | {"learner.schedule_won_by": np.array(0)}


def main() -> None:
    """Make the run folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--greed", type=float, default=1.0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    config, weights = load_weights(arguments.agent)
    config = changed(config, dict(text.split("=", 1) for text in arguments.set))
    run = RunFolder(arguments.run)
    run.create(config, {"command": f"bench/go_on.py {arguments.agent} {arguments.run} --greed {arguments.greed}"})
    state = begun(config, weights, arguments.greed)
    about = {"config": asdict(config), "steps": 0, "wall_s": 0.0, "score": None, "best_score": None}
    run.save_checkpoint(0, 1, state, about)
    print(f"{run.path}: begins with {arguments.agent}, {config.hidden} hidden units")


if __name__ == "__main__":
    main()
