"""What a step of four frames takes on one core: ale-py, and the console without a screen, with it, and with strips.

    python -m bench.console [--rounds 9] [--seconds 0.4] [--envs 32] [--no-parts] [--json FILE]

In turns within a round: ale-py alone, four calls a step, and with its screen read once a step; the console, whose step
always draws its last frame; and the same with the strips of the network's images, made as training makes them. Without
a screen is half of the difference between steps of twelve and of four frames: four frames that are not drawn. Each has
as many envs as a subprocess of a training with 64 on two cores, and random actions, held for twelve frames. µs a step
of one env, of the core and by the clock; "times" is how many times as fast as ale-py alone, by the core's time: median
and range of the ratios within a round.

Then, from a build of the console that reads the processor's counter between its parts, while it plays: ns of each part
of a frame, by the clock. To compile it takes half a minute. *Logic* is the translated code without what stands in for
its loops. What takes a few ns is done beside other things: 0 is read for it.
"""

import itertools
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bench.common import in_turns, parser
from fastpong.arrays import U8
from fastpong.config import make_config
from fastpong.console import fast
from fastpong.console.controls import NOOP, set_controls
from fastpong.console.court import ROM
from fastpong.console.drawing import as_screens
from fastpong.console.fast_tia import begin_picture
from fastpong.console.games import first_state
from fastpong.console.masks import PICTURE
from fastpong.console.registers import begin_frame
from fastpong.console.state import NEVER, STATE_BYTES, clip, records
from fastpong.console.step import is_over
from fastpong.console.translate import Hook, translated
from fastpong.envs.ale import ACTIONS, new_emulator
from fastpong.envs.console import Console
from fastpong.envs.memory import zeros
from fastpong.kernels.preprocess import observe
from fastpong.parallel.machine import versions
from fastpong.policy import make_policy
from fastpong.pong import SCREEN
from fastpong.system import processor

FRAMES, HELD = 4, 12
"""Frames of a step, and those for which an action is held."""

ALONE, UNDRAWN = "ale-py", "console, no screen"

Times = tuple[float, float]
"""µs a step: of the core, and by the clock."""


def actions(envs: int, frame_skip: int) -> Iterator[U8]:
    """Return the actions of step after step, uint8 (envs,) each: up or down."""
    drawn = np.random.default_rng(0).integers(0, 2, (997, envs), np.uint8)
    return itertools.cycle(np.repeat(drawn, HELD // frame_skip, 0))


def ale(envs: int, screens: bool) -> Callable[[], None]:
    """Return a step of so many emulators."""
    emulators = [new_emulator() for _ in range(envs)]  # which step single frames
    for emulator in emulators:
        emulator.reset_game()
    choices, shown = actions(envs, FRAMES), list(np.zeros((envs, *SCREEN), np.uint8))

    def step() -> None:
        for emulator, choice, screen in zip(emulators, next(choices).tolist(), shown, strict=True):
            action = ACTIONS[choice]
            for _ in range(FRAMES):
                emulator.act(action)
            if emulator.game_over():
                emulator.reset_game()
            if screens:
                emulator.getScreen(screen)

    return step


def console(envs: int, frame_skip: int, image: str = "screens", strips: bool = False) -> Callable[[], None]:
    """Return a step of so many consoles, with or without what training then makes of their courts."""
    everyone, arrays = range(envs), zeros(envs, Console.name, (image,))
    engine, choices, repeats = Console(arrays, frame_skip), actions(envs, frame_skip), np.zeros(envs, np.uint8)
    engine.reset(everyone)
    rollout, members = make_policy(make_config("fast", {"num_envs": envs})).make_rollout(envs), np.arange(envs)
    seen = observe(arrays)

    def step() -> None:
        engine.step(everyone, next(choices), repeats)
        if strips:
            rollout.record(rollout.new_row(), seen, members, members)
            rollout.release(rollout.rows - 1)

    return step


def measured(step: Callable[[], None], envs: int, seconds: float) -> Callable[[], Times]:
    """Return a measurement that repeats a step for some seconds."""

    def measure() -> Times:
        steps, wall, core = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() < wall + seconds:
            step()
            steps += envs
        return 1e6 * (time.process_time() - core) / steps, 1e6 * (time.perf_counter() - wall) / steps

    return measure


def measure(envs: int, seconds: float, rounds: int) -> dict[str, list[Times]]:
    """Measure all of them in turns; return the µs a step of each round."""
    steps = {
        ALONE: ale(envs, False), "ale-py, screen": ale(envs, True), "of twelve frames": console(envs, 3 * FRAMES),
        "console, screen": console(envs, FRAMES), "console, court": console(envs, FRAMES, "courts"),
        "console, court and strips": console(envs, FRAMES, "courts", strips=True),
    }  # fmt: skip
    for step in steps.values():
        step()  # compiles
    times = in_turns({name: measured(step, envs, seconds) for name, step in steps.items()}, rounds)
    pairs = zip(times.pop("of twelve frames"), times["console, screen"], strict=True)
    undrawn = [((long[0] - short[0]) / 2, (long[1] - short[1]) / 2) for long, short in pairs]
    return {ALONE: times.pop(ALONE), "ale-py, screen": times.pop("ale-py, screen"), UNDRAWN: undrawn, **times}


def table(times: dict[str, list[Times]]) -> str:
    """Write a row for each."""
    lines = ["| µs a step of four frames | core | clock | times ale-py | range |", "|---" * 5 + "|"]
    for name, values in times.items():
        core, clock = (statistics.median(column) for column in zip(*values, strict=True))
        ratios = [one[0] / this[0] for one, this in zip(times[ALONE], values, strict=True)]
        middle, extremes = statistics.median(ratios), f"{min(ratios):.2f} … {max(ratios):.2f}"
        lines.append(f"| {name} | {core:.2f} | {clock:.2f} | {middle:.2f} | {extremes} |")
    return "\n".join(lines)


# ---- what a frame is made of -----------------------------------------------------------------------------------------

PARTS = ("court", "score", "blank lines", "logic", "begin of a frame", "controls", "clip", "copy of a state")
_COURT, _SCORE, _BLANK, _LOGIC, _BEGIN, _CONTROLS, _CLIP, _COPY = range(len(PARTS))
_PER_STEP = (_CLIP, _COPY)

_picture: Any = PICTURE
_PROBED = np.dtype(
    (np.record, [*((name, _picture.fields[name][0]) for name in _picture.names), ("ticks", np.int64, len(PARTS))])
)
"""`PICTURE`, and the ticks of the processor's counter that each part has taken."""


def _counter(typing: Any) -> Any:
    """Build code that reads the processor's counter."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        name, kind = "llvm.readcyclecounter", ir.FunctionType(ir.IntType(64), ())
        return builder.call(builder.module.declare_intrinsic(name, (), kind), ())

    return types.int64(), code


_now: Any = intrinsic(_counter)


def _timed(hook: Any, part: int) -> Any:
    """Return a hook that counts its ticks."""

    def call(s: Any, p: Any, screen: Any) -> Any:
        began = _now()
        done = hook(s, p, screen)
        p.ticks[part] += _now() - began
        return done

    return numba.njit(error_model="numpy")(call)


def probed() -> Any:
    """Return a function that plays frames as `fastpong.console.step` does, and counts."""
    hooks = {
        address: Hook(_timed(hook.function, part), hook.exits)
        for part, (address, hook) in enumerate(fast.HOOKS.items())
    }
    run = translated(ROM, (fast.POWER_ON, fast.FRAME), fast.indirect_targets(), hooks, fast.CALLS)

    def play(
        states: Any, words: Any, halves: Any, first: Any, screens: Any, pictures: Any, choices: Any, spent: Any
    ) -> None:
        # choices uint8 (steps, envs); spent int64 (2, PARTS) out: ticks in frames that are not drawn, and in others
        copy = first.copy()
        for step in range(len(choices)):
            for env in range(len(states)):
                s, p, screen = states[env], pictures[env], screens[env]
                t0 = _now()
                clip(words[env], halves[env])
                t1 = _now()
                copy[0] = s
                t2 = _now()
                spent[0, _CLIP] += t1 - t0
                spent[0, _COPY] += t2 - t1
                for number in range(FRAMES):
                    drawn = number == FRAMES - 1
                    p.ticks[:] = 0
                    t0 = _now()
                    action: Any = np.int64(choices[step, env])
                    set_controls(s, action, NOOP, 0, 0, s.SWCHB >> 6)
                    t1 = _now()
                    begin_frame(s)
                    begin_picture(p, drawn)
                    t2 = _now()
                    run(s, p, screen)
                    t3 = _now()
                    s.frames += 1
                    p.ticks[_CONTROLS], p.ticks[_BEGIN] = t1 - t0, t2 - t1
                    p.ticks[_LOGIC] = t3 - t2 - p.ticks[_COURT] - p.ticks[_SCORE] - p.ticks[_BLANK]
                    for part in range(len(PARTS)):
                        spent[int(drawn), part] += p.ticks[part]
                    if is_over(s, NEVER):
                        states[env] = first[0]
                        break

    return numba.njit(error_model="numpy")(play)


def nothing() -> Any:
    """Return a function that reads the counter so many times, and returns the ticks between the first and the last."""

    def count(times: int) -> int:
        began = _now()
        for _ in range(times):
            _now()
        return _now() - began  # type: ignore[no-any-return]

    return numba.njit(count)


def parts(envs: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return ns of each part of a frame, in those that are not drawn and in those that are: medians over rounds."""
    play, count = probed(), nothing()
    rows, first = np.zeros((envs, STATE_BYTES), np.uint8), first_state()[0]
    rows[:] = first
    shown, pictures = as_screens(np.zeros((envs, *SCREEN), np.uint8)), np.zeros(envs, _PROBED)
    arrays = records(rows), rows.view(np.int32), rows.view(np.int16), records(first), shown, pictures
    drawn = np.repeat(np.random.default_rng(0).integers(0, 2, (200, envs), np.uint8), HELD // FRAMES, 0)
    found = []
    for number in range(rounds + 1):
        spent, wall, began = np.zeros((2, len(PARTS)), np.int64), time.perf_counter(), count(1)
        began = count(1_000_000)
        a_tick = 1e9 * (time.perf_counter() - wall) / began
        play(*arrays, drawn, spent)
        if number:
            steps, reading = drawn.size, began / 1_000_000
            frames = np.array([steps * (FRAMES - 1), steps])[:, None]
            ticks = spent / frames
            ticks[0, list(_PER_STEP)] *= FRAMES - 1
            # Between two readings lies one of them. The logic has those inside of the hooks: two of five calls each.
            calls = np.where(np.arange(len(PARTS)) == _BLANK, 3, np.where(np.arange(len(PARTS)) == _LOGIC, 6, 1))
            found.append(a_tick * np.maximum(ticks - calls * reading * (spent > 0), 0))
    middle = np.median(found, 0)
    return {
        name: {"undrawn": round(float(middle[0, part]), 1), "drawn": round(float(middle[1, part]), 1)}
        for part, name in enumerate(PARTS)
    }


def parts_table(found: dict[str, dict[str, float]]) -> str:
    """Write a row for each part; the last one is the sum over a step."""
    lines = ["| ns | frame that is not drawn | drawn | a step: three and one |", "|---" * 4 + "|"]
    total = 0.0
    for part, (name, ns) in enumerate(found.items()):
        if part in _PER_STEP:
            step, cells = ns["undrawn"], "| |"
        else:
            step = (FRAMES - 1) * ns["undrawn"] + ns["drawn"]
            cells = f"| {ns['undrawn']:.0f} | {ns['drawn']:.0f} |"
        total += step
        lines.append(f"| {name} {cells} {step:.0f} |")
    frame = {
        kind: sum(ns[kind] for p, ns in enumerate(found.values()) if p not in _PER_STEP)
        for kind in ("undrawn", "drawn")
    }
    lines.append(f"| sum | {frame['undrawn']:.0f} | {frame['drawn']:.0f} | {total:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--seconds", type=float, default=0.4, help="length of each measurement")
    options.add_argument("--envs", type=int, default=32)
    options.add_argument("--no-parts", action="store_true")
    options.add_argument("--json", type=Path, help="write all rounds to this file")
    arguments = options.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    times = measure(arguments.envs, arguments.seconds, arguments.rounds)
    print(f"{processor()}, one core, {arguments.envs} envs, {arguments.rounds} rounds\n\n{table(times)}", flush=True)
    found = {} if arguments.no_parts else parts(arguments.envs, arguments.rounds)
    if found:
        print(f"\n{parts_table(found)}")
    if arguments.json:
        rounds = {name: [[round(v, 3) for v in one] for one in values] for name, values in times.items()}
        result = {"envs": arguments.envs, "rounds": rounds, "parts": found}
        arguments.json.write_text(json.dumps({**result, "machine": {"processor": processor(), **versions()}}) + "\n")


if __name__ == "__main__":
    main()
