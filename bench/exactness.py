"""Frames in turns on both engines, the console and ale-py, until something differs.

    python -m bench.exactness [--frames 100000000] [--processes 1] [--seed 0]
    python -m bench.exactness --replay FILE

Each process has 72 games on both engines. A third of them steps single frames, each drawn and compared. The others step
four frames: as in training, three of them not drawn and of the last one the court alone; or with screens and both kinds
of extra ones. After every step RAM, images, rewards and ends are compared, and that the console's plain core was never
needed.

A third of the players press random ones of all six actions, for 1 … 64 frames each; a third is the shipped agent,
greedy; a third samples from it. Half of them have sticky actions. Of the agent's points an eighth is played at random,
like the first one of each game, so that games differ; and an eighth with the button held. Another seed is other play.

Progress goes to stderr. The last line on stdout is one JSON object. Ctrl-C ends a run as if it were done. If something
differs, the exit status is 1, and the line has the actions and repeats of that game: ``--replay`` plays them again.
"""

import json
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

import fastpong
from bench.common import parser
from fastpong.arrays import U8
from fastpong.config import changed
from fastpong.envs.ale import Ale
from fastpong.envs.base import COURTS
from fastpong.envs.console import Console
from fastpong.envs.engine import ENGINES, IMAGES, Engine
from fastpong.envs.memory import zeros
from fastpong.kernels.preprocess import as_words, observe
from fastpong.parallel.machine import versions
from fastpong.policy import make_policy
from fastpong.pong import ACTIONS, MAX_FRAMES
from fastpong.system import processor

SETS: tuple[tuple[int, tuple[str, ...]], ...] = ((1, IMAGES[:3]), (4, COURTS), (4, IMAGES))
"""Frames a step, and images, of each set of games."""

GAMES = 24
"""Games of a set."""

ROUND = 4
"""Frames of each game in a round: the agent acts once."""

STICKY = 0.25
LONGEST = 64  # frames for which a random player holds an action
SHARE = 1 / 8  # of the agent's points: random ones, and as many with the button held

MILLION = 1_000_000
TOTALS = ("frames", "games", "points_won", "points_lost", "images_compared", "rams_compared")

_AGENT, _RANDOM, _BUTTON = range(3)  # how a point is played
_WITH_BUTTON = np.array([ACTIONS.index(name) for name in ("RIGHTFIRE", "LEFTFIRE", "FIRE")], np.uint8)


class Pair:
    """Some games, each on both engines."""

    def __init__(self, frame_skip: int, images: Sequence[str], games: int):
        self.frame_skip, self.images, self.everyone = frame_skip, tuple(images), range(games)
        self._ales, self.consoles = (zeros(games, kind.name, images) for kind in (Ale, Console))
        self._ale, self._console = Ale(self._ales, frame_skip), Console(self.consoles, frame_skip)
        self._engines: tuple[Engine, ...] = (self._ale, self._console)
        self._names = ("rewards", "ended", *images)
        self._told = np.zeros((MAX_FRAMES // frame_skip + 1, 2, games), np.uint8)  # actions and repeats of each game
        self._steps = np.zeros(games, np.int64)
        self.totals = Counter[str]()
        self.seconds = dict.fromkeys(ENGINES, 0.0)
        for engine in self._engines:
            engine.reset(self.everyone)

    @property
    def plain_steps(self) -> int:
        """Steps that the console's plain core had to take."""
        return self._console._games.steps_of_plain_core

    def step(self, actions: U8, repeats: U8) -> dict[str, Any] | None:
        """Step all games on both engines; return what differs first, if anything does."""
        self._told[self._steps, 0, self.everyone] = actions
        self._told[self._steps, 1, self.everyone] = repeats
        self._steps += 1
        for engine in self._engines:
            began = time.perf_counter()
            engine.step(self.everyone, actions, repeats)
            self.seconds[engine.name] += time.perf_counter() - began
        difference = self._difference()
        if difference is None:
            self._count()
        return difference

    def _difference(self) -> dict[str, Any] | None:
        for name in self._names:
            ale, console = self._ales[name], self.consoles[name]
            if not np.array_equal(_long(ale), _long(console)):
                return self._report(name, ale, console)
        ram, rows = np.array([self._ale.ram(env) for env in self.everyone]), self.consoles["rows"]
        if not np.array_equal(ram, rows[:, : ram.shape[1]]):  # a state begins with it
            return self._report("RAM", ram, rows[:, : ram.shape[1]])
        if self.plain_steps:
            needed = np.array([needs_plain_core(self.game(env)) for env in self.everyone])
            return self._report("steps of the plain core", np.zeros_like(needed), needed)
        return None

    def _report(self, what: str, ale: Any, console: Any) -> dict[str, Any]:
        """Say where two arrays, (games, …), differ."""
        places = np.argwhere(ale != console)
        env = int(places[0, 0]) if len(places) else 0
        mine = places[places[:, 0] == env]
        first = [
            {"at": place[1:].tolist(), "ale": int(ale[tuple(place)]), "console": int(console[tuple(place)])}
            for place in mine[:8]
        ]
        at = {"env": env, "step": int(self._steps[env]), "frame": int(self._steps[env]) * self.frame_skip}
        return {"what": what, **at, "places": len(mine), "first": first, "game": self.game(env)}

    def game(self, env: int) -> dict[str, Any]:
        """Return the actions and repeats of the present game, a digit each, from its begin on."""
        told = self._told[: self._steps[env], :, env]
        actions, repeats = ("".join(map(str, column)) for column in told.T.tolist())
        return {"frame_skip": self.frame_skip, "images": self.images, "actions": actions, "repeats": repeats}

    def _count(self) -> None:
        rewards, ended = self.consoles["rewards"], self.consoles["ended"] != 0
        games = int(ended.sum())
        every_step = sum(name != "final_screens" for name in self.images)
        images = len(self.everyone) * every_step + games * ("final_screens" in self.images)
        # A game may end in the first frame of a step.
        frames = len(self.everyone) * self.frame_skip - games * (self.frame_skip - 1)
        won, lost = int(rewards[rewards > 0].sum()), -int(rewards[rewards < 0].sum())
        counted = (frames, games, won, lost, images, len(self.everyone))
        self.totals.update(dict(zip(TOTALS, counted, strict=True)))
        self._steps[ended] = 0


def _long(array: Any) -> Any:
    """View screens as fewer, longer numbers."""
    return as_words(array) if array.ndim == 3 and array.dtype == np.uint8 else array


def needs_plain_core(game: dict[str, Any]) -> bool:
    """Play a game on the console alone."""
    arrays = zeros(1, Console.name, game["images"])
    console = Console(arrays, game["frame_skip"])
    console.reset(range(1))
    for inputs in _inputs(game):
        console.step(range(1), *inputs)
    return console._games.steps_of_plain_core > 0


def _inputs(game: dict[str, Any]) -> list[tuple[U8, U8]]:
    columns = (np.array([*map(int, game[name])], np.uint8)[:, None] for name in ("actions", "repeats"))
    return list(zip(*columns, strict=True))


class Players:
    """Who plays the games of some pairs: what each is, the buttons that it presses, and its sticky actions.

    The agent's network is computed as in training, twenty times as fast as `fastpong.load` does: most of the time has
    to be ale-py's. It acts every four frames, and its action is held until it acts again.
    """

    def __init__(self, pairs: Sequence[Pair], rng: np.random.Generator):
        self._pairs, self._rng = pairs, rng
        games = np.arange(len(pairs) * GAMES)
        self._parts = [slice(at, at + GAMES) for at in range(0, len(games), GAMES)]
        self._is_agent = games % 3 > 0
        self._greedy, self._sampled = games[games % 3 == 1], games[games % 3 == 2]
        self._sticky = np.where(games // 3 % 2, STICKY, 0.0)
        self._play = np.full(len(games), _RANDOM)
        self._of_agent, self._of_random = np.zeros(len(games), np.uint8), np.zeros(len(games), np.uint8)
        self._left = np.zeros(len(games))  # frames for which a random player still holds its action
        agent = fastpong.load()
        changes = {"num_envs": len(games), "seed": int(rng.integers(1 << 31)), "exploring_start_steps": 0}
        self._policy = make_policy(changed(agent.config, changes))
        self._policy.weights.load(agent.weights)
        self._rollout, self._rounds = self._policy.make_rollout(len(games)), 0
        self._rewards, self._ended = np.zeros(len(games), np.int8), np.ones(len(games), np.int8)
        self._seen = [
            (observe({**pair.consoles, "rewards": self._rewards[part], "ended": self._ended[part]}),
             np.flatnonzero(self._is_agent[part]))
            for pair, part in zip(pairs, self._parts, strict=True)
        ]  # fmt: skip

    def look(self) -> None:
        """Let the agent choose its actions for the next four frames."""
        rollout = self._rollout
        row = rollout.new_row()
        for part, (observation, rows) in zip(self._parts, self._seen, strict=True):
            rollout.record(row, observation, rows, rows + part.start)
        self._rewards[:], self._ended[:] = 0, 0
        for members, greedy in ((self._greedy, True), (self._sampled, False)):
            first = row * rollout.num_envs
            self._of_agent[members] = self._policy.act(rollout.inputs, first, members, self._rounds, greedy)
        rollout.release(rollout.rows - 1)
        self._rounds += 1

    def inputs(self, number: int) -> tuple[U8, U8]:
        """Return the actions and repeats of the next step of a pair: uint8 (GAMES,) each."""
        part, frames = self._parts[number], self._pairs[number].frame_skip
        left, pressed, play = self._left[part], self._of_random[part], self._play[part]
        left -= frames
        fresh = left <= 0
        if fresh.any():
            pressed[fresh] = self._rng.integers(0, len(ACTIONS), GAMES, np.uint8)[fresh]
            left[fresh] = LONGEST ** self._rng.random(GAMES)[fresh]
        chosen = self._of_agent[part]
        actions = np.where(play == _AGENT, chosen, np.where(play == _RANDOM, pressed, _WITH_BUTTON[chosen]))
        held = (self._rng.random((frames, GAMES)) < self._sticky[part]).cumprod(0).sum(0)
        return actions, held.astype(np.uint8)

    def take(self, number: int) -> None:
        """Look at the outcome of a step of a pair, and draw who plays the points that begin now."""
        part, arrays = self._parts[number], self._pairs[number].consoles
        rewards, ended = arrays["rewards"], arrays["ended"]
        self._rewards[part] += rewards
        self._ended[part] |= ended
        if not rewards.any():
            return
        begins, draws = (rewards != 0) & self._is_agent[part], self._rng.random(GAMES)
        kind = np.where(draws < SHARE, _RANDOM, np.where(draws < 2 * SHARE, _BUTTON, _AGENT))
        self._play[part][begins] = np.where(ended != 0, _RANDOM, kind)[begins]


def play(frames: int, seed: Sequence[int], tell: Callable[[dict[str, Any]], object]) -> None:
    """Play so many frames, until something differs; `tell` of the totals after each 100 rounds and at the end."""
    pairs = [Pair(frame_skip, images, GAMES) for frame_skip, images in SETS]
    players = Players(pairs, np.random.default_rng(seed))
    found, rounds, began = None, 0, time.perf_counter()
    while found is None and sum(pair.totals["frames"] for pair in pairs) < frames:
        found = _round(pairs, players)
        rounds += 1
        if rounds % 100 == 0 or found:
            tell(_state(pairs, time.perf_counter() - began, found))
    tell({**_state(pairs, time.perf_counter() - began, found), "done": True})


def _round(pairs: Sequence[Pair], players: Players) -> dict[str, Any] | None:
    players.look()
    for number, pair in enumerate(pairs):
        for _ in range(ROUND // pair.frame_skip):
            found = pair.step(*players.inputs(number))
            if found:
                return found
            players.take(number)
    return None


def _state(pairs: Sequence[Pair], seconds: float, found: dict[str, Any] | None) -> dict[str, Any]:
    totals = {name: sum(pair.totals[name] for pair in pairs) for name in TOTALS}
    totals["plain_steps"] = sum(pair.plain_steps for pair in pairs)
    engines = {name: sum(pair.seconds[name] for pair in pairs) for name in ENGINES}
    return {"totals": totals, "seconds": seconds, "engines": engines, "found": found}


def serve(frames: int, seed: Sequence[int], pipe: Connection) -> None:
    """Body of a process. It ends with its parent, which alone hears of ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    play(frames, seed, pipe.send)


def run(frames: int, processes: int, seed: int) -> dict[str, Any]:
    """Play in some processes, tell of each million frames, and return what was reached."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[Connection, dict[str, Any]] = {}
    workers = []
    for number in range(processes):
        ours, theirs = context.Pipe(duplex=False)
        share = frames // processes + (number < frames % processes)
        workers.append(context.Process(target=serve, args=(share, (seed, number), theirs), daemon=True))
        workers[-1].start()
        theirs.close()
        pipes[ours] = {}
    before, millions = (time.perf_counter(), 0), 0
    try:
        while not all(state.get("done") for state in pipes.values()) and not _found(pipes):
            for pipe in wait([pipe for pipe, state in pipes.items() if not state.get("done")]):
                assert isinstance(pipe, Connection)
                try:
                    pipes[pipe] = pipe.recv()
                except EOFError:
                    sys.exit("a process ended: see above")
            reached = _total(pipes)["frames"]
            if reached // MILLION > millions:
                now, millions = (time.perf_counter(), reached), reached // MILLION
                speed = (now[1] - before[1]) / (now[0] - before[0])
                print(f"{reached:,} frames, no difference, {speed:,.0f} frames/s", file=sys.stderr, flush=True)
                before = now
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would lose what was reached
        print("stopped", file=sys.stderr)
    for worker in workers:
        worker.terminate()
        worker.join()
    states, found = [state for state in pipes.values() if state], _found(pipes)
    seconds = max((state["seconds"] for state in states), default=0.0)
    every = max(1e-9, sum(state["seconds"] for state in states))
    shares = {name: round(sum(state["engines"][name] for state in states) / every, 3) for name in ENGINES}
    known, wanted = versions(), ("fastpong", "python", "numpy", "numba", "ale_py", "platform")
    return {
        **_total(pipes), "differences": len(found), "seconds": round(seconds, 1), "share_of_time": shares,
        "seed": seed, "processes": processes, "processor": processor(),
        "versions": {name: known[name] for name in wanted}, **({"found": found} if found else {}),
    }  # fmt: skip


def _found(pipes: dict[Connection, dict[str, Any]]) -> list[dict[str, Any]]:
    return [state["found"] for state in pipes.values() if state.get("found")]


def _total(pipes: dict[Connection, dict[str, Any]]) -> dict[str, int]:
    return {
        name: sum(state["totals"][name] for state in pipes.values() if state) for name in (*TOTALS, "plain_steps")
    }  # fmt: skip


def describe(found: dict[str, Any]) -> str:
    """Say what differs, and where."""
    first = ", ".join(f"{one['at']}: {one['ale']} and {one['console']}" for one in found["first"])
    return (
        f"{found['what']} of ale-py and the console differ in env {found['env']}, frame {found['frame']} of its game "
        f"(step {found['step']}), in {found['places']} places: {first}"
    )


def replay(file: Path) -> dict[str, Any] | None:
    """Play the game again that a run's last line has in this file; return what differs."""
    game = json.loads(file.read_text().splitlines()[-1])["found"][0]["game"]
    pair = Pair(game["frame_skip"], game["images"], 1)
    return next(filter(None, (pair.step(*inputs) for inputs in _inputs(game))), None)


def main() -> None:
    """Play or replay; print what was found."""
    options = parser(__doc__)
    options.add_argument("--frames", type=int, default=100 * MILLION)
    options.add_argument("--processes", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--replay", type=Path, help="a file with what a run printed that found a difference")
    arguments = options.parse_args()
    if arguments.replay:
        found = replay(arguments.replay)
        print(describe(found) if found else "nothing differs")
        sys.exit(1 if found else 0)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    result = run(arguments.frames, arguments.processes, arguments.seed)
    for found in result.get("found", []):
        print(describe(found))
    print(json.dumps(result), flush=True)
    sys.exit(1 if result["differences"] else 0)


if __name__ == "__main__":
    main()
