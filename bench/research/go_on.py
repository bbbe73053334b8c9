"""Fine-tune an agent: make a run that begins with its weights.

    python -m bench.research.go_on AGENT RUN [--scale 0.5] [--set key=value …]

Then ``fastpong train --run RUN --resume``. The run begins with the weights of an agent, such as the one that ships
(``fastpong/agent.npz``), where the run that it comes from is gone: the optimiser remembers nothing, and
the late phase has begun. Its logits may be multiplied by --scale, so that it explores more at first.
Settings are the agent's own but for those that are set. Prints where the run is.
"""

from pathlib import Path

import numpy as np

from bench.common import parser
from fastpong.arrays import Arrays
from fastpong.config import Config, changed
from fastpong.config_sources import parse_assignments
from fastpong.envs.engine import DEFAULT_ENGINE
from fastpong.envs.vector_env import VectorEnv
from fastpong.runs.facts import Facts
from fastpong.runs.find import load_weights
from fastpong.runs.folder import RunFolder
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer


def begun(config: Config, weights: Arrays, scale: float) -> Arrays:
    """Return the state of a run, see `fastpong.training.trainer.Trainer.state`, before its first step.

    Parameters
    ----------
    config : Config
        Of the run, preset ``fast``.
    weights : dict
        By name, those of a network of `config`.
    scale : float
        What the logits are multiplied by.
    """
    with VectorEnv.of(config, 1) as envs:
        trainer = Trainer(config, Actor(config, envs))
        trainer.start()
        trainer.learner.begin_late_phase(0)
        state = trainer.state()
        trainer.close()
    state |= {f"policy.{name}": np.asarray(array, np.float32) for name, array in weights.items()}
    state["policy.w2"][: config.num_actions] *= np.float32(scale)
    return state


def main() -> None:
    """Make the run folder."""
    options = parser(__doc__)
    options.add_argument("agent", type=Path)
    options.add_argument("run", type=Path)
    options.add_argument("--scale", type=float, default=1.0)
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = options.parse_args()
    config, weights = load_weights(arguments.agent)
    config = changed(config, parse_assignments(arguments.set))
    run = RunFolder(arguments.run)
    run.create(config, {"command": f"bench.research.go_on {arguments.agent} {arguments.run} --scale {arguments.scale}"})
    state = begun(config, weights, arguments.scale)
    run.save_checkpoint(state, Facts(config, 0, engine=DEFAULT_ENGINE))
    print(f"{run.path}: begins with {arguments.agent}, {config.hidden_units} hidden units")


if __name__ == "__main__":
    main()
