"""A game as a page: one file with the game, the network that played it, and what shows both.

What it does stands in ``fastpong/page``. It needs nothing from elsewhere, and holds nothing of the cartridge.
"""

import base64
import html
import json
import re
import shlex
import zlib
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpong import __version__, dense, files
from fastpong.agent import Agent
from fastpong.arrays import F32, U8, Arrays
from fastpong.config import Config
from fastpong.errors import FastpongError, UsageError, printable, tell
from fastpong.kernels.returns import advantages_of
from fastpong.pong import COLOURS
from fastpong.runs.checkpoint import CheckpointError
from fastpong.runs.facts import load_facts, load_policy, read_metrics
from fastpong.runs.find import weights_file
from fastpong.runs.folder import RunFolder

if TYPE_CHECKING:
    from fastpong.commands.play import Step

_COLUMNS, _LONG, _POINTS = 300, 60, 400  # of the carpet, at most; steps of a long rally; of the curve, at most
_BATCH = 64  # steps of the carpet that are computed at once

Points = list[tuple[int, int]]
"""Steps that ended points, and who won them: 1 for the agent, −1 for the computer."""


def of_the_page(agent: Agent) -> Agent:
    """Return an agent as the page has it: weights of half the precision, and sampled actions, as training has them.

    Raises `UsageError` for one without the network of preset ``fast``, or with weights beyond this precision.
    """
    if agent.config.algorithm != "ppo":
        raise UsageError(f"the page shows the network of preset fast, and {agent.name} is of {agent.config.preset}")
    with np.errstate(over="ignore"):
        weights: Arrays = {name: array.astype(np.float16) for name, array in agent.weights.items()}
    if not all(np.isfinite(array).all() for array in weights.values()):
        raise UsageError(f"the page holds weights up to 65504, and {agent.name} has larger ones")
    return Agent(agent.config, weights, agent.name, sample=True)


def write(
    agent: Agent, played: "Iterable[Step]", out: Path, seconds: float, checkpoint: Path | None, seed: int
) -> None:
    """Play a game, and write its page; `seconds` are those of a step. The agent is one `of_the_page`.

    Of a run folder the page has the curve and the carpet as well, unless its files are damaged, which is told. Raises
    `FastpongError` if the page cannot be written; whatever stood there before is then intact.
    """
    game = [*played]
    screens = np.array([step.screen for step in game])
    points = [(k, step.reward) for k, step in enumerate(game) if step.reward]
    run = RunFolder(checkpoint) if checkpoint and checkpoint.is_dir() else None
    lines = _lines(run)
    values = np.array([step.value for step in game], np.float32)
    data = {
        "weights": halves(agent.weights),
        "screens": differences(screens),
        "actions": bytes(step.action for step in game),
        "values": values.tobytes(),
        "logs": np.array([step.log_prob for step in game], "<f4").tobytes(),
        "advantages": _advantages(agent.config, game, values).tobytes(),
    }
    rally = _rally(points, len(game))
    about = {
        "network": network(agent.config), "colours": COLOURS, "points": points, "seconds": seconds, "rally": rally,
        "curve": _curve(lines), "carpet": _carpet(run, agent, game, rally, _steps(checkpoint)),
    }  # fmt: skip
    won, lost = (sum(reward == sign for _, reward in points) for sign in (1, -1))
    name, config = _name(checkpoint), agent.config
    command = f"fastpong play {shlex.quote(name) + ' ' if checkpoint else ''}--out game.html --seed {seed}"
    parts = {
        "TITLE": html.escape(f"Run {name}" if run else name or "The shipped agent"),
        "FACTS": f"A real game of Atari Pong, {len(game):,} steps, with sampled actions: agent {won}, opponent {lost}.",
        "LEARNED": _training(lines),
        "FOOT": f"{html.escape(command)}, fastpong {__version__}, preset {config.preset}, seed {config.seed}.",
        "GAMMA": f"{agent.config.gamma:.4g}",
        "LAMBDA": f"{config.gae_lambda if config.baseline == 'value' else 1:g}",
        "ABOUT": json.dumps(about, separators=(",", ":")),
        "DATA": "".join(f'<script type="text/plain" id="{key}">{packed(one)}</script>\n' for key, one in data.items()),
    }
    try:
        files.write(out, filled("page.html", parts, "net", "game", "page").encode())
    except OSError as error:
        raise FastpongError(f"cannot write {out}: {error.strerror or error}") from None


def filled(name: str, parts: dict[str, str], *scripts: str) -> str:
    """Return a file of ``fastpong/page`` with its holes filled in: with `parts`, and with scripts that stand there."""
    folder = resources.files("fastpong") / "page"
    parts = parts | {script.upper(): (folder / f"{script}.js").read_text("utf-8") for script in scripts}
    return re.sub("__([A-Z]+)__", lambda hole: parts[hole[1]], (folder / name).read_text("utf-8"))


def packed(data: bytes) -> str:
    """Return bytes as ``unpack`` of ``net.js`` takes them."""
    return base64.b64encode(zlib.compress(data, 9)).decode()


def network(config: Config) -> dict[str, int]:
    """Return what ``Net`` of ``net.js`` has to know of the network."""
    names = {"frames": "frame_stack", "history": "action_history", "actions": "num_actions", "units": "hidden_units"}
    return {name: getattr(config, setting) for name, setting in names.items()}


def halves(weights: Arrays) -> bytes:
    """Return weights as ``Net`` of ``net.js`` takes them: halves, first the low bytes of all of them."""
    numbers = np.concatenate([weights[name].ravel() for name in ("kernel", "bias", "w1", "w2")]).astype("<f2")
    return numbers.view(np.uint8).reshape(-1, 2).T.tobytes()


def differences(screens: U8) -> bytes:
    """Return screens (n, 210, 160) as ``Screens`` of ``game.js`` takes them.

    Each is the one before with some runs of pixels, down the columns, changed by exclusive or. The ball and the paddles
    are taller than wide, so that these are few: a whole game takes 24 KB.
    """
    changes, out = screens.copy(), bytearray()
    changes[1:] ^= screens[:-1]

    def number(value: int) -> None:
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)

    for change in changes.transpose(0, 2, 1).reshape(len(screens), -1):
        changed = np.flatnonzero(change)
        breaks = (np.diff(changed) != 1) | (np.diff(change[changed].astype(int)) != 0)
        runs = np.split(changed, np.flatnonzero(breaks) + 1) if len(changed) else []
        number(len(runs))
        end = 0
        for run in runs:
            number(int(run[0]) - end)
            number(len(run))
            out.append(int(change[run[0]]))
            end = int(run[-1]) + 1
    return bytes(out)


def _advantages(config: Config, game: "list[Step]", values: F32) -> F32:
    """Return the advantages of a game, by the kernel that PPO uses; of one that was cut, the last value counts on."""
    rewards = np.array([[step.reward] for step in game], np.int8)
    after = np.append(values, values[-1])[:, None]
    advantages, returns = np.zeros((2, len(game), 1), np.float32)
    ended = np.zeros_like(rewards)
    advantages_of(rewards, ended, after, config.gamma, config.gae_lambda, config.return_lambda, advantages, returns)
    return advantages if config.baseline == "value" else returns


def _rally(points: Points, steps: int) -> tuple[int, int]:
    """Return the steps from … to of the rally that the page begins with: a long lost one, if there is one."""
    begins = [0, *(k + 1 for k, _ in points)]
    rallies = [(begin, k + 1, reward) for begin, (k, reward) in zip(begins, points, strict=False)]
    lost = [rally for rally in rallies if rally[2] < 0]
    first = next((rally for rally in lost if rally[1] - rally[0] > _LONG), [*lost, *rallies, (0, steps, 0)][0])
    return first[0], first[1]


def _carpet(
    run: RunFolder | None, agent: Agent, game: "list[Step]", rally: tuple[int, int], steps: int | None
) -> dict[str, Any] | None:
    """Return how far earlier weights of a run, and the agent's, lean to up or down at each step of a rally.

    In per cent: P(up) − P(down). Weights that cannot be read are left out, which is told.
    """
    rows: list[tuple[str, Arrays]] = []
    for path in run.history.paths() if run else ():
        try:
            _, facts = load_facts(path)
            config, weights = load_policy(path)
        except CheckpointError as error:
            tell(f"{error}: left out")
            continue
        if config.algorithm == "ppo" and network(config) == network(agent.config) and facts.steps < (steps or 1 << 60):
            rows.append((_short(facts.steps), weights))
    if not rows:
        return None
    rows.append(("played" if steps is None else _short(steps), agent.weights))
    begin = max(rally[0], rally[1] - _COLUMNS)
    parts = [*_inputs(agent, game, begin, rally[1])]
    leanings = []
    for name, weights in rows:
        chances = np.concatenate([dense.softmax(dense.outputs(weights, *inputs)[0]) for inputs in parts])
        leanings.append((name, np.rint(100 * (chances[:, 0] - chances[:, 1])).astype(int).tolist()))
    return {"from": begin, "to": rally[1], "rows": leanings}


def _inputs(agent: Agent, game: "list[Step]", begin: int, end: int) -> Iterator[tuple[F32, F32]]:
    """Yield what the network got at the steps begin … end of a game, as `fastpong.dense.outputs` takes it, in parts."""
    player = Agent(agent.config, agent.weights, actions=agent.config.num_actions)
    seen: list[tuple[F32, F32]] = []
    for k, step in enumerate(game[:end]):
        if k >= begin:
            seen.append(player.inputs(step.screen))
        if seen and (len(seen) == _BATCH or k == end - 1):
            images, side = zip(*seen, strict=True)
            yield np.concatenate(images), np.concatenate(side)
            seen = []
        player.remember(step.screen, step.action)


def _lines(run: RunFolder | None) -> list[dict[str, Any]]:
    """Return the lines of metrics of a run; none if there are none, or if they cannot be read, which is told."""
    try:
        return read_metrics(run.metrics) if run and files.exists(run.metrics) else []
    except UsageError as error:
        tell(f"{error}: the page has no curve")
        return []


def _curve(lines: list[dict[str, Any]]) -> list[tuple[int, float]] | None:
    """Return steps of training, and the share of the points won at each; None: fewer than two."""
    known = [(line["steps"], round(line["point_rate"], 3)) for line in lines if line["point_rate"] is not None]
    return known[:: len(known) // _POINTS + 1] if len(known) > 1 else None


def _training(lines: list[dict[str, Any]]) -> str:
    """Return how long a run has been training."""
    return f"over {_short(lines[-1]['steps'])} steps in {lines[-1]['wall_s'] / 60:,.1f} minutes" if lines else ""


def _steps(checkpoint: Path | None) -> int | None:
    """Return the steps of training after which weights were saved; None: their file does not say it."""
    try:
        return load_facts(weights_file(checkpoint))[1].steps
    except CheckpointError:
        return None


def _short(steps: int) -> str:
    """Return a number of steps as a short text."""
    if steps < 1000:
        return str(steps)
    return f"{steps / 1e3:,.0f} k" if steps < 999_500 else f"{steps / 1e6:,.1f} M"


def _name(checkpoint: Path | None) -> str:
    """Return the last part of a path: no more of this machine gets into the page."""
    return printable(checkpoint.absolute().resolve().name) if checkpoint else ""
