"""Every setting of a run: its group, meaning, unit and range, and the presets."""

import dataclasses
import difflib
import functools
import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastpong.errors import UsageError

Value = int | float | str | None

GROUPS = {
    "run": "how long a run is, and what it writes",
    "env": "the emulators",
    "network": "the policy",
    "learner": "what every learner has",
    "ppo": "PPO",
    "late": "PPO once the agent wins most points",
    "starts": "PPO's exploring starts",
    "reinforce": "the reference programs' learner",
}
"""Groups of settings: the tables of ``config.toml``."""

_ALGORITHM = {"ppo": "ppo", "late": "ppo", "starts": "ppo", "reinforce": "reinforce"}  # of groups that only one uses

_MIN_ROLLOUT_STEPS = 16  # of an env: in shorter rollouts nearly all of an advantage would be the value's estimate

HIDDEN_MULTIPLE = {"ppo": 64, "reinforce": 1}
"""Hidden units are a multiple of this: PPO's kernels work on 64 columns at once."""


def _setting(
    group: str, default: Value, text: str, low: float = -math.inf, high: float = math.inf, **extra: Any
) -> Any:
    metadata = {"group": group, "help": text, "low": low, "high": high, "algorithm": _ALGORITHM.get(group), **extra}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Config:
    """Settings of one run. Frozen: a changed copy comes from `changed`, which checks it.

    ``field.metadata`` holds the group, the help text, the range (both ends allowed), the algorithm that alone uses the
    setting, if one does, and for words the choices; the command line, ``config.toml`` and ``docs/settings.md`` are made
    from it. Steps are agent steps of `frame_skip` frames, summed over all envs.
    """

    preset: str = _setting("run", "fast", "preset that the other settings start from")
    seed: int = _setting("run", 0, "seed of weights, sticky actions, sampled actions and minibatches", 0, 2**63 - 1)
    target_score: float = _setting(
        "run", 18.0, "stop at this mean score of 100 games, or running reward of windows; 22 never stops", -21.0, 22.0
    )
    log_interval: int = _setting(
        "run", 20_000, "steps between two lines of metrics.jsonl; the first comes at 5,000 at the latest", 1
    )
    checkpoint_interval: int = _setting("run", 500_000, "steps between two checkpoints", 1)
    eval_games: int = _setting(
        "run", 32, "games that each candidate for best.npz plays at the end; 0: the training score decides", 0
    )

    num_envs: int = _setting("env", 128, "emulators that are stepped side by side", 1, 65536)
    frame_skip: int = _setting("env", 4, "frames of one step", 1, 60)
    repeat_action_probability: float = _setting(
        "env", 0.25, "probability at each frame that the previous action is repeated (sticky actions)", 0.0, 0.99
    )
    num_actions: int = _setting("env", 3, "2: up and down; 3: no-op as well", 2, 3)

    hidden_units: int = _setting("network", 64, "units of the hidden layer; with PPO a multiple of 64", 1, 65536)
    frame_stack: int = _setting(
        "network", 3, "images that the policy gets, the present one and those before it", 1, 16, algorithm="ppo"
    )
    action_history: int = _setting("network", 3, "previous actions that the policy gets", 0, 5, algorithm="ppo")

    algorithm: str = _setting("learner", "ppo", "how the weights are learned", choices=("ppo", "reinforce"))
    learning_rate: float = _setting("learner", 1e-3, "step size of Adam or RMSProp, in weight units", 0.0, 10.0)
    gamma: float = _setting("learner", 0.995, "discount factor per step", 0.0, 1.0)

    batch_size: int = _setting(
        "ppo", 16_384, "steps in a batch, 16 or more of each env; in the late phase four times as many", 1, 10**9
    )
    update_epochs: int = _setting("ppo", 3, "epochs over each batch", 1, 1000)
    minibatch_size: int = _setting(
        "ppo", 1024, "samples of a minibatch, over all ranks; in the late phase four times as many", 1, 10**7
    )
    baseline: str = _setting(
        "ppo",
        "value",
        "what PPO subtracts from the returns: the value that it learns (with λ), their mean, or nothing",
        choices=("value", "mean", "none"),
    )
    gae_lambda: float = _setting("ppo", 0.97, "λ of the advantages (GAE)", 0.0, 1.0)
    return_lambda: float = _setting("ppo", 1.0, "λ of the returns that the value learns", 0.0, 1.0)
    clip_low: float = _setting("ppo", 0.2, "the ratio of probabilities is clipped below 1 − this", 0.0, 1.0)
    clip_high: float = _setting("ppo", 0.8, "the ratio of probabilities is clipped above 1 + this", 0.0, 100.0)
    entropy_coef: float = _setting("ppo", 0.005, "coefficient of the entropy bonus", 0.0, 1.0)
    noop_win_rate: float = _setting(
        "ppo", 0.5, "no-op is played once this share of the latest 1000 points is won; 0: from the first step", 0.0, 1.0
    )
    target_kl: float = _setting(
        "ppo", 0.045, "KL divergence of a batch, in nats, beyond which the learning rate falls; 0: off", 0.0, 10.0
    )

    late_win_rate: float = _setting("late", 0.65, "share of 1000 points won at which the late phase begins", 0.0, 1.0)
    late_by_step: int = _setting(
        "late", 1_200_000, "steps after the weights were drawn at which the late phase begins at the latest", 0
    )
    reinit_win_rate: float = _setting(
        "late", 0.55, "share of 1000 points won (of fewer: 0) below which others are drawn then, three times; 0: off",
        0.0, 1.0,
    )  # fmt: skip
    target_kl_late: float = _setting(
        "late", 0.015, "target_kl of the late phase, in nats; 0: target_kl is kept", 0.0, 10.0
    )
    logit_growth: float = _setting("late", 0.1, "share by which the logits grow with each batch; 0: off", 0.0, 1.0)
    logit_growth_entropy: float = _setting("late", 0.2, "entropy, in nats, down to which they grow", 0.0, 10.0)

    exploring_start_steps: int = _setting(
        "starts", 24, "steps for which a point begins with up or down held, at most; 0: off", 0, 10_000
    )
    exploring_start_until: int = _setting(
        "starts", 1_000_000, "steps since the weights were drawn in which the share of such points falls to 0", 1
    )

    batch_games: int = _setting("reinforce", 10, "games that end before each update", 1, 10**6)
    batch_unit: str = _setting(
        "reinforce", "point", "what an update may not cut; the rest is carried over", choices=("point", "game")
    )
    window_seconds: float = _setting(
        "reinforce", 0.0, "seconds between updates, in place of batch_games; 0: off", 0.0, 86400.0
    )
    running_reward_decay: float = _setting(
        "reinforce", 0.99, "decay of the running reward, per game or per window", 0.0, 1.0
    )

    @property
    def rollout_steps(self) -> int:
        """Steps of each env in a batch: with any number of envs the weights change about as often."""
        return max(_MIN_ROLLOUT_STEPS, round(self.batch_size / self.num_envs))


_REFERENCE: dict[str, Value] = {
    "algorithm": "reinforce",
    "num_envs": 64,
    "num_actions": 2,
    "hidden_units": 200,
    "gamma": 0.99,
    "learning_rate": 1e-4,
}
_PPG: dict[str, Value] = {
    "learning_rate": 1e-3,
    "window_seconds": 2.0,
    "running_reward_decay": 0.95,
    "target_score": 0.0,
    "log_interval": 1_000_000_000,  # its lines are those of its windows
}
PRESETS: dict[str, dict[str, Value]] = {
    "fast": {},
    "karpathy": _REFERENCE,
    "ray": {**_REFERENCE, "batch_unit": "game"},
    "ppg": {**_REFERENCE, **_PPG},
}
"""What each preset changes in the defaults. ``docs/reference-programs.md`` says what they reproduce."""


@functools.cache
def settings(algorithm: str | None = None) -> dict[str, "dataclasses.Field[Any]"]:
    """Every setting by name, or those that an algorithm uses."""
    return {
        f.name: f
        for f in dataclasses.fields(Config)
        if algorithm is None or f.metadata["algorithm"] in (None, algorithm)
    }


def names_by_group(algorithm: str | None = None) -> dict[str, list[str]]:
    """Names of the settings of each group, of all or of those that an algorithm uses."""
    used = settings(algorithm)
    return {group: [name for name, one in used.items() if one.metadata["group"] == group] for group in GROUPS}


def allowed(name: str) -> str:
    """Return what a setting may be."""
    meta = settings()[name].metadata
    choices = list(PRESETS) if name == "preset" else meta.get("choices")
    if choices:
        return ", ".join(choices)
    low, high = _bound(meta["low"]), _bound(meta["high"])
    return f"{low} … {high}" if math.isfinite(meta["high"]) else f"{low} or more"


def _bound(value: float) -> str:
    if value == 2**63 - 1:
        return "2⁶³ − 1"
    return number(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def number(value: object) -> str:
    """Return a value as TOML and the command line read it, large integers in groups of digits."""
    return f"{value:_}" if isinstance(value, int) and value >= 10_000 else str(value)


_ELSEWHERE = {
    "actions": "num_actions", "clip": "clip_low", "clip_coef": "clip_low", "clip_range": "clip_low",
    "envs": "num_envs", "hidden": "hidden_units", "lr": "learning_rate", "n_epochs": "update_epochs",
    "n_steps": "batch_size", "num_steps": "batch_size", "sticky": "repeat_action_probability",
    "target": "target_score",
}  # fmt: skip
"""Names of settings in CleanRL, in Stable-Baselines3 and among our options, where they are unlike those here."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the one of some names that somebody may have meant, as in another program or misspelt; None: none."""
    plain, known = name.lower().replace("-", "_"), list(known)
    if _ELSEWHERE.get(plain) in known:
        return _ELSEWHERE[plain]
    return next(iter(difflib.get_close_matches(plain, known, 1, cutoff)), None)


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that is none of these, with the nearest one."""
    known = list(known)
    near, all_ = nearest(name, known), f"the {kind}s are {', '.join(known)}"
    hint = f"did you mean '{near}'?" if near else all_ if kind != "setting" else "`fastpong settings` lists them"
    return UsageError(f"there is no {kind} {name!r}: {hint}")


def at_least(name: str, value: Any, low: float, *, whole: bool = False) -> None:
    """Raise `UsageError` unless `value` is a finite number, or a `whole` one, of `low` or more; a text is none."""
    kind = numbers.Integral if whole else numbers.Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not low <= value < math.inf:  # nan is in no range
        raise UsageError(f"{name} must be {'an integer' if whole else 'a number'}, {low:g} or more, not {value!r}")


def find_setting(name: str) -> "dataclasses.Field[Any]":
    """Return a setting, or raise `UsageError` with the nearest name."""
    known = settings()
    if name not in known:
        raise unknown("setting", name, known)
    return known[name]


def check(name: str, value: object) -> Value:
    """Return `value` as the type of setting `name`, or raise `UsageError` with the allowed range."""
    setting = find_setting(name)
    meta = setting.metadata
    kind = setting.type if isinstance(setting.type, type) else str
    if name == "preset" and value not in PRESETS:
        raise unknown("preset", str(value), PRESETS)
    if kind is str:
        if "choices" in meta and value not in meta["choices"]:
            raise UsageError(f"{name} must be one of {', '.join(meta['choices'])}, not {value!r}")
        return str(value)
    try:
        result: int | float = kind(value) if not isinstance(value, bool) else kind("bool")
        if kind is int and isinstance(value, float) and value != result:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name} must be {'an integer' if kind is int else 'a number'}, not {value!r}") from None
    if not meta["low"] <= result <= meta["high"]:  # also catches nan
        high = f" … {meta['high']:g}" if math.isfinite(meta["high"]) else " or more"
        raise UsageError(f"{name} must be {meta['low']:g}{high}, not {value!r}: {meta['help']}")
    return result


def changed(config: Config, changes: Mapping[str, object]) -> Config:
    """Copy of `config` with checked changes; raises `UsageError`."""
    new = dataclasses.replace(config, **{k: check(k, v) for k, v in changes.items()})  # type: ignore[arg-type]
    used = settings(new.algorithm)
    unused = {name: setting.metadata["algorithm"] for name, setting in settings().items() if name not in used}
    if new.window_seconds:
        unused["batch_games"] = "runs without window_seconds"
    for name in unused:
        if name in changes and getattr(new, name) != settings()[name].default:
            raise UsageError(f"{name} is a setting of {unused[name]}: it changes nothing here")
    if new.hidden_units % HIDDEN_MULTIPLE[new.algorithm]:
        raise UsageError(f"with PPO, hidden_units must be a multiple of 64, not {new.hidden_units}")
    return new


def new_config(changes: Mapping[str, object]) -> Config:
    """Build the settings of a new run from changes, of which `preset` is one; raises `UsageError`."""
    return make_config(str(changes.get("preset", "fast")), {k: v for k, v in changes.items() if k != "preset"})


def make_config(preset: str = "fast", changes: Mapping[str, object] | None = None) -> Config:
    """Build the settings of a preset, with changes on top; raises `UsageError`."""
    check("preset", preset)
    return changed(Config(preset=preset), {**PRESETS[preset], **(changes or {})})
