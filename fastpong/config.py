"""Every setting of a run: its meaning, unit and range, the presets, and TOML in and out."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastpong.errors import UsageError

Value = int | float | str | None

_SHORTEST_ROLLOUT = 16  # steps: in shorter ones nearly all of an advantage would be the value's guess


def _setting(default: Value, text: str, low: float = -math.inf, high: float = math.inf, **extra: Any) -> Any:
    return field(default=default, metadata={"help": text, "low": low, "high": high, **extra})


@dataclass(frozen=True)
class Config:
    """Settings of one run. Frozen: a changed copy comes from `changed`, which checks it.

    ``field.metadata`` holds the help text, the range (both ends allowed unless the text says otherwise) and,
    for words, the choices; the command line and ``config.toml`` are made from it.
    """

    preset: str = _setting("fast", "name of the preset that the other values started from")
    seed: int = _setting(0, "seed of weights, emulators, sticky actions and action noise", 0, 2**63 - 1)

    envs: int = _setting(64, "number of games played side by side", 1, 65536)
    frame_skip: int = _setting(4, "emulator frames for which an action is held", 1, 60)
    sticky: float = _setting(0.25, "probability at each frame that the previous action is repeated", 0.0, 0.99)
    actions: int = _setting(3, "2: up and down; 3: no-op as well", 2, 3)

    algorithm: str = _setting("ppo", "how the weights are learned", choices=("ppo", "reinforce"))
    hidden: int = _setting(64, "hidden units; ppo: a multiple of 16", 1, 65536)
    weight_std: float = _setting(0.02, "deviation of the weights of `w1` at the start; 0: 1/√6400", 0.0, 10.0)
    gamma: float = _setting(0.985, "discount factor per step", 0.0, 1.0)
    learning_rate: float = _setting(1e-3, "step size of RMSProp or Adam, in weight units", 0.0, 10.0)

    frames: int = _setting(3, "ppo: screens that the network sees, the present one and those before it", 1, 16)
    past_actions: int = _setting(3, "ppo: last actions that the network sees", 0, 5)
    kernel_std: float = _setting(0.1, "ppo: deviation of the convolution's weights at the start", 0.0, 10.0)
    batch_steps: int = _setting(
        8192, "ppo: steps of all games together in a batch; each game takes its share, but at least 16", 1, 10**9
    )
    epochs: int = _setting(5, "ppo: passes over each batch", 1, 1000)
    pass_share: float = _setting(
        1.0,
        "ppo: about how many of the samples each pass goes over, drawn by how much they can teach and weighted by how "
        "seldom they are drawn; 1: all",
        0.2,
        1.0,
    )
    minibatch: int = _setting(1024, "ppo: samples that each step of the optimiser stands for, drawn or not", 1, 10**7)
    gae_lambda: float = _setting(0.95, "ppo: λ of the advantage estimate", 0.0, 1.0)
    value_lambda: float = _setting(1.0, "ppo: λ of the returns that the value learns", 0.0, 1.0)
    clip: float = _setting(0.2, "ppo: the ratio of probabilities is clipped below 1 - this", 0.0, 1.0)
    clip_high: float = _setting(0.8, "ppo: and above 1 + this, so that rare good actions can spread", 0.0, 100.0)
    gamma_end: float = _setting(0.995, "ppo: what γ comes to be as the learning rate falls", 0.0, 1.0)
    entropy: float = _setting(0.005, "ppo: weight of the entropy bonus", 0.0, 1.0)
    value_weight: float = _setting(0.5, "ppo: weight of half the squared error of the value", 0.0, 100.0)
    adam_beta_1: float = _setting(0.9, "ppo: decay of Adam's mean gradient, per update", 0.0, 1.0)
    adam_beta_2: float = _setting(0.999, "ppo: decay of Adam's mean squared gradient, per update", 0.0, 1.0)
    adam_epsilon: float = _setting(1e-5, "ppo: added to the root of that mean", 0.0, 1.0)
    held_steps: int = _setting(
        24,
        "ppo: at first points begin with the paddle held toward one wall, for 1 to so many steps (exploring starts); "
        "these are not learned from; 0: none",
        0,
        10_000,
    )
    held_until: int = _setting(
        1_000_000, "ppo: the share of points that begin so falls in a line from 1 to 0 at this step", 1
    )
    practice: int = _setting(
        4,
        "ppo: a lost point is tried again from a moment before, apart from the game, until it is won, or so "
        "many times; 0: never",
        0,
        1000,
    )
    practice_points: float = _setting(
        0.45, "ppo: lost points are tried again while this share of 1000 points, or more, is won", 0.0, 1.0
    )
    practice_until: int = _setting(
        4_500_000, "ppo: the number of times falls in a line, and practice ends at this step", 1
    )
    practice_end: str = _setting(
        "win", "ppo: what ends it, an attempt that is won or only the last one", choices=("win", "last")
    )
    practice_shifted: float = _setting(
        0.0,
        "ppo: the share of attempts that have to take some actions of the lost one, a step sooner or later than they "
        "were taken there",
        0.0,
        1.0,
    )
    kl: float = _setting(
        0.045,
        "ppo: the learning rate is reduced if a batch changes the policy by more KL, in nats, and a pass that finds "
        "twice as much is the last one; 0: never",
        0.0,
        10.0,
    )
    kl_won: float = _setting(0.02, "ppo: what takes the place of kl once the agent wins; 0: nothing", 0.0, 10.0)
    critic: int = _setting(
        16,
        "ppo: once the agent wins, a value network of its own learns from so many of the latest batches, and after as "
        "many more gives the advantages; 0: never",
        0,
        1000,
    )
    critic_visits: float = _setting(
        4.0, "ppo: for each step of a batch it learns from so many steps of them", 0.1, 100.0
    )
    critic_rate: float = _setting(1e-3, "ppo: Adam's step size for it at first", 0.0, 1.0)
    critic_lambda: float = _setting(0.9, "ppo: λ of the returns it learns from", 0.0, 1.0)
    critic_decay: float = _setting(0.99, "ppo: decay of the running mean of its weights, per minibatch", 0.0, 1.0)
    critic_gae_lambda: float = _setting(0.9, "ppo: gae_lambda with its values", 0.0, 1.0)
    schedule_steps: int = _setting(
        4_000_000, "ppo: learning rate and entropy weight fall in a line to 0 at this step", 1
    )
    schedule_floor: float = _setting(0.05, "ppo: they stop falling at this share", 0.0, 1.0)
    sharpen: float = _setting(
        0.01,
        "ppo: once the agent wins, the logits grow by this share with each batch, so that the policy becomes greedier",
        0.0,
        1.0,
    )
    sharpen_entropy: float = _setting(
        0.2, "ppo: they grow while the entropy, in nats, is above this, which falls with the learning rate", 0.0, 10.0
    )
    sharpen_points: float = _setting(0.65, "ppo: the agent wins when it has won this share of 1000 points", 0.0, 1.0)
    sharpen_steps: int = _setting(
        3_800_000, "ppo: the fall takes so many steps more, or longer, once the agent wins", 0
    )
    sharpen_latest: int = _setting(1_200_000, "ppo: the logits begin to grow at this step at the latest", 0)

    inputs: str = _setting(
        "difference", "reinforce: what the network sees of a screen", choices=("difference", "image+difference")
    )
    window_seconds: float = _setting(
        0.0,
        "reinforce: update every so many seconds of wall-clock time, and stop by the mean reward of these windows; "
        "0: by batch_games, and stop by the score",
        0.0,
        86400.0,
    )
    batch_games: int = _setting(10, "reinforce: games that have to end before the weights are updated", 1, 10**6)
    carry: str = _setting(
        "point",
        "reinforce: what may not be cut by an update, a point or a whole game; the rest carries over",
        choices=("point", "game"),
    )
    standardise: str = _setting(
        "game",
        "reinforce: returns get mean 0 and deviation 1 over each game in the batch, or over the batch",
        choices=("game", "batch"),
    )
    rmsprop_decay: float = _setting(0.99, "reinforce: decay of the mean squared gradient, per update", 0.0, 1.0)
    rmsprop_epsilon: float = _setting(1e-5, "reinforce: added to the root of that mean", 0.0, 1.0)
    running_mean: float = _setting(0.99, "decay of the reported running mean, per game, or per window", 0.0, 1.0)

    wire: str = _setting(
        "float32",
        "several ranks: how gradients travel; bfloat16 halves the bytes, and changes the numbers",
        choices=("float32", "bfloat16"),
    )
    local_steps: int = _setting(
        1,
        "ppo, several ranks: steps that each rank takes by itself before weights are averaged; more than 1 saves "
        "traffic, and changes the numbers",
        1,
        10**6,
    )
    target: float = _setting(
        18.0,
        "stop at this mean score of the last 100 games; with windows, at this running mean of their rewards; "
        "22 never stops",
        -21.0,
        22.0,
    )
    log_steps: int = _setting(20_000, "steps between lines of metrics.jsonl", 1)
    checkpoint_steps: int = _setting(500_000, "steps between checkpoints", 1)
    keep_checkpoints: int = _setting(2, "checkpoints kept in the run folder", 1)
    eval_games: int = _setting(
        32,
        "whole games that each candidate for best.npz plays at the end of a run; 0: the best training score decides",
        0,
    )

    @property
    def rollout_steps(self) -> int:
        """Steps of each game in a batch: with any number of games the weights change about as often."""
        return max(_SHORTEST_ROLLOUT, round(self.batch_steps / self.envs))


_SEEDS: dict[str, Value] = {
    "algorithm": "reinforce",
    "actions": 2,
    "hidden": 200,
    "weight_std": 0.0,
    "gamma": 0.99,
    "learning_rate": 1e-4,
}
PRESETS: dict[str, dict[str, Value]] = {
    "fast": {},
    "karpathy": _SEEDS,
    "ray": {**_SEEDS, "carry": "game"},
    "ppg": {**_SEEDS, "learning_rate": 1e-3, "window_seconds": 2.0, "running_mean": 0.95, "target": 0.0},
}
"""What each preset changes in the defaults. ``docs/presets.md`` says what they reproduce, and where they differ."""


def settings() -> dict[str, "dataclasses.Field[Any]"]:
    """Every setting by name."""
    return {f.name: f for f in dataclasses.fields(Config)}


def check(name: str, value: object) -> Value:
    """Return `value` as the type of setting `name`, or raise `UsageError` with the allowed range."""
    known = settings()
    if name not in known:
        raise UsageError(f"there is no setting '{name}'; the settings are {', '.join(known)}")
    setting = known[name]
    meta = setting.metadata
    kind = setting.type if isinstance(setting.type, type) else str
    if name == "preset" and value not in PRESETS:
        raise UsageError(f"there is no preset '{value}'; the presets are {', '.join(PRESETS)}")
    if kind is str:
        if "choices" in meta and value not in meta["choices"]:
            raise UsageError(f"{name} must be one of {', '.join(meta['choices'])}, not {value!r}")
        return str(value)
    try:
        number: int | float = kind(value) if not isinstance(value, bool) else kind("bool")
        if kind is int and isinstance(value, float) and value != number:
            raise ValueError
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be {'an integer' if kind is int else 'a number'}, not {value!r}") from None
    if not meta["low"] <= number <= meta["high"]:  # also catches nan
        high = f" … {meta['high']:g}" if math.isfinite(meta["high"]) else " or more"
        raise UsageError(f"{name} must be {meta['low']:g}{high}, not {value}: {meta['help']}")
    return number


def changed(config: Config, changes: Mapping[str, object]) -> Config:
    """Copy of `config` with checked changes; raises `UsageError`."""
    new = dataclasses.replace(config, **{k: check(k, v) for k, v in changes.items()})  # type: ignore[arg-type]
    if new.algorithm == "ppo" and new.hidden % 16:
        raise UsageError(f"with ppo, hidden must be a multiple of 16 (the kernels' vectors), not {new.hidden}")
    if new.algorithm == "ppo" and new.window_seconds:
        raise UsageError("window_seconds is for reinforce: use --preset ppg")
    return new


def make_config(preset: str = "fast", changes: Mapping[str, object] | None = None) -> Config:
    """Build the settings of a preset, with changes on top; raises `UsageError`."""
    check("preset", preset)
    return changed(Config(preset=preset), {**PRESETS[preset], **(changes or {})})


def parse_assignments(assignments: list[str]) -> dict[str, object]:
    """Turn ``["gamma=0.98", …]`` into a dict of checked values; raises `UsageError`."""
    changes: dict[str, object] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set wants key=value, not '{assignment}'")
        name = name.strip()
        changes[name] = check(name, text.strip())
    return changes


def read_toml(path: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Read a settings file, such as the ``config.toml`` of a run.

    Returns
    -------
    (changes, about)
        The settings it holds, checked, and its table ``[about]`` (versions and the like), if any.

    Raises
    ------
    UsageError
        If the file is missing, not TOML, or holds an unknown or impossible setting.
    """
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a TOML file: {error}") from None
    about = table.pop("about", {})
    return {name: check(name, value) for name, value in table.items()}, about


def to_toml(config: Config, about: Mapping[str, object]) -> str:
    """Write settings with their help as comments, and a table ``[about]`` of plain values."""
    lines = []
    for name, setting in settings().items():
        lines += [f"# {setting.metadata['help']}", f"{name} = {_toml(getattr(config, name))}"]
    lines += ["", "[about]", *(f"{name} = {_toml(value)}" for name, value in about.items())]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
