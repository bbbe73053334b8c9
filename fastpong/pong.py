"""Real Pong: several emulators in one process, stepped by the rules of ``ALE/Pong-v5``.

The screens are palette indices, which the emulator writes straight into the caller's array: 0.4 µs a screen
instead of 17 µs for RGB.
"""

from collections.abc import Sequence
from typing import Any

import ale_py
import gymnasium
import numpy as np
import numpy.typing as npt
from ale_py import Action, ALEInterface, ALEState, roms

from fastpong.noise import PRACTICE, SHIFT, sticky_repeats, uniform_of
from fastpong.practice import NO_PRACTICE, Attempts, Moment, Practice, remember

SCREEN = (210, 160)
"""Height and width of a screen in pixels."""

ACTIONS = (Action.RIGHT, Action.LEFT, Action.NOOP)
"""What the policy's actions 0, 1, 2 mean to the emulator: RIGHT moves the paddle up, LEFT moves it down.

They are emulator actions by name, so that neither the minimal nor the full action set can shift them."""

UP, DOWN, STAY = range(3)

MAX_FRAMES = 108_000
"""Frames after which a game is cut off (half an hour), as in ``ALE/Pong-v5``."""

_STICKY_BLOCK = 64  # steps of sticky noise drawn in one NumPy call, to make it cost next to nothing

Arrays = dict[str, npt.NDArray[Any]]


def space_of(slots: int) -> Any:
    """Observation of `slots` games: their screens, and the outcome of their last step.

    ``screens`` uint8 (slots, 210, 160) palette indices; ``rewards`` int8 (slots,) points won minus lost;
    ``ended`` int8 (slots,) 1 where the step ended a game, and the screen is the first one of the next game, also 1
    after a reset; 2 where the emulator was put elsewhere after the step, to begin or to end a practice attempt: not 0
    means that the screen does not follow the one before; ``practising`` int8 (slots,) 1 where the screen belongs to
    an attempt and not to a game; ``planned`` int8 (slots,) 1 + the action that has to be taken next, 0 where the agent
    is free to choose.
    """
    box = gymnasium.spaces.Box
    return gymnasium.spaces.Dict(
        {
            "screens": box(0, 255, (slots, *SCREEN), np.uint8),
            "rewards": box(-21, 21, (slots,), np.int8),
            "ended": box(0, 2, (slots,), np.int8),
            "practising": box(0, 1, (slots,), np.int8),
            "planned": box(0, len(ACTIONS), (slots,), np.int8),
        }
    )


class PongGames(gymnasium.Env[Any, Any]):
    """Some games of a run, stepped one after the other in this process.

    Games restart by themselves, in the step in which they end (gymnasium's ``SAME_STEP``): every step of every
    game is a real one. They all begin in the same state, so the emulator is put back to that: to reset it would take
    64 frames (3.4 ms instead of 0.03), for which the games of other subprocesses would wait as well.

    Sticky actions are drawn here and not in the emulator, frame by frame with the same distribution, for two
    reasons: the noise then depends on (run seed, game, step) alone, and the action that is held becomes a
    known part of the state (ALE's own saved state leaves it out), so that a restored game goes on bit for bit.
    Stepping single frames costs no more than ALE's own frame skip. Pong itself has no randomness: without sticky
    actions ALE's seed changes nothing, and every game begins in the same state.

    Creating an emulator takes 80 ms (ALE fills a colour table). So only one is made at first, and the games take
    turns on it (0.1 ms for exchanging states); with every step of a group one more game gets its own.

    Parameters
    ----------
    games : sequence of int
        Global indices of the games; they key all noise.
    seed : int
        The run's seed.
    frame_skip : int
        Frames a step.
    sticky : float
        Probability at each frame that the previous action is repeated.
    actions : int
        2 (up, down) or 3 (no-op as well).
    slots : int, optional
        Size of the observation, if it has to be larger than the number of games.
    splits : sequence of int
        Where the games are cut into groups, which can be stepped separately with `step_group`.
    window : bool
        Let the emulator show the game in a window; for a single game.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        games: Sequence[int],
        seed: int = 0,
        frame_skip: int = 4,
        sticky: float = 0.25,
        actions: int = 2,
        slots: int | None = None,
        splits: Sequence[int] = (),
        window: bool = False,
    ):
        self.games = np.asarray(games, np.int64)
        self.seed, self.frame_skip, self.sticky, self.window = seed, frame_skip, sticky, window
        slots = len(self.games) if slots is None else slots
        self.slots = slots
        self.observation_space = space_of(slots)
        self.action_space = gymnasium.spaces.MultiDiscrete([actions] * slots)
        bounds = [0, *splits, len(self.games)]
        self.groups = [range(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]
        self.arrays: Arrays = {}
        self._screens: list[npt.NDArray[np.uint8]] = []  # those of each game, in `arrays`
        self._outcomes: list[list[npt.NDArray[np.int8]]] = []  # what a step of each group writes, in `arrays`
        self._shared: ALEInterface | None = None  # where the games without an emulator of their own take turns
        self._first: Moment | None = None  # how every game begins
        self._own: list[ALEInterface | None] = [None] * len(self.games)
        self._states: list[ALEState | None] = [None] * len(self.games)  # of the games that take turns
        self._held = [Action.NOOP] * len(self.games)
        self._practice = [Practice() for _ in self.games]
        self._steps = [0] * len(self.groups)
        self._repeats: list[list[list[int]]] = [[]] * len(self.groups)  # of each group: by steps, and games

    def bind(self, arrays: Arrays) -> None:
        """Write observations into these arrays, laid out as `space_of` says, from now on."""
        self.arrays, self._screens = arrays, list(arrays["screens"])
        of_steps = [arrays[name] for name in ("rewards", "ended", "planned")]
        self._outcomes = [[array[members.start : members.stop] for array in of_steps] for members in self.groups]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Arrays, dict[str, Any]]:
        """Start every game anew; with a seed, from that run seed, otherwise going on with the noise."""
        super().reset(seed=seed)
        if seed is not None:
            self.seed = seed
            self._steps = [0] * len(self.groups)
            self._forget_noise()
        first = self._start()
        for i, emulator in enumerate(self._own):
            if emulator is None:
                self._states[i] = first.state
            else:
                emulator.restoreState(first.state)
            self.arrays["screens"][i] = first.screen
            self._held[i], self._practice[i] = Action.NOOP, Practice()
        for name in ("rewards", "practising", "planned"):
            self.arrays[name][:] = 0
        self.arrays["ended"][:] = 1
        return self.arrays, {}

    def step(self, action: npt.NDArray[Any]) -> tuple[Arrays, float, bool, bool, dict[str, Any]]:
        """Step every game; `action` is integer (slots,). Rewards and ends are in the observation."""
        for group, members in enumerate(self.groups):
            self.step_group(group, [int(action[i]) for i in members])
        return self.arrays, 0.0, False, False, {}

    def step_group(self, group: int, actions: Sequence[int], attempts: Attempts = NO_PRACTICE) -> None:
        """Step the games of one group.

        `actions` holds 0 (up), 1 (down) or 2 (no-op) for each; a point that is lost now is practised with these
        `attempts`, see `fastpong.practice`.
        """
        members = self.groups[group]
        now = self._steps[group]
        at = now % _STICKY_BLOCK
        if at == 0 or not self._repeats[group]:
            first = now - at
            games = self.games[members.start : members.stop]
            block = sticky_repeats(self.seed, games, first, _STICKY_BLOCK, self.frame_skip, self.sticky)
            self._repeats[group] = block.tolist()
        self._steps[group] = now + 1
        for outcome in self._outcomes[group]:
            outcome.fill(0)
        for i, choice, repeat in zip(members, actions, self._repeats[group][at], strict=True):
            emulator = self._own[i] or self._swap_in(i)
            act = emulator.act
            action, reward = ACTIONS[choice], 0
            held = self._held[i]
            for _ in range(repeat):
                reward += act(held)
            for _ in range(self.frame_skip - repeat):
                reward += act(action)
            if repeat < self.frame_skip:
                self._held[i] = action
            if reward or emulator.game_over():
                self._end_point(i, emulator, reward, now, attempts)
            else:
                practice = self._practice[i]
                practice.follow(emulator, self._held[i], choice, attempts)
                if practice.aside is not None:
                    self._tell_plan(i)
                emulator.getScreen(self._screens[i])
            if self._states[i] is not None:
                self._states[i] = emulator.cloneState(include_rng=False)
        self._settle_one()

    def _end_point(self, i: int, emulator: ALEInterface, reward: int, now: int, attempts: Attempts) -> None:
        """Go on after a step that ended a point, or a game, with the next one or with practice."""
        restart = self._start() if emulator.game_over() else None
        if restart is not None:
            emulator.restoreState(restart.state)
            self._held[i] = restart.held
        practice = self._practice[i]
        practised = practice.aside is not None
        game = int(self.games[i])

        def draw(k: int) -> float:
            return uniform_of(self.seed, SHIFT, game, 3 * now + k) if k else uniform_of(self.seed, PRACTICE, game, now)

        moment = practice.after(emulator, self._held[i], reward, restart, attempts, draw) or restart
        if moment is None:
            emulator.getScreen(self._screens[i])
        else:
            self._screens[i][:], self._held[i] = moment.screen, moment.held
        self.arrays["rewards"][i] = reward
        self.arrays["ended"][i] = 1 if restart is not None and not practised else 2 if moment is not None else 0
        self.arrays["practising"][i] = practice.aside is not None
        self._tell_plan(i)

    def _tell_plan(self, i: int) -> None:
        choice = self._practice[i].planned()
        self.arrays["planned"][i] = 0 if choice is None else 1 + choice

    def snapshot(self) -> list[tuple[int, int, int, bytes, bytes]]:
        """State of every game: (global index, steps since the run began, held action, emulator state, practice)."""
        return [
            (
                int(self.games[i]),
                self._steps[group],
                self._held[i].value,
                self._save_emulator(i),
                self._practice[i].dump(),
            )
            for group, members in enumerate(self.groups)
            for i in members
        ]

    def restore(self, states: dict[int, tuple[int, int, bytes, bytes]]) -> None:
        """Put every game back to ``states[global index] = (steps, held action, emulator state, practice)``.

        Screens and outcomes in the observation are the caller's to restore: the emulator draws nothing until its next
        step.
        """
        self._start()
        for group, members in enumerate(self.groups):
            for i in members:
                steps, held, data, practice = states[int(self.games[i])]
                state, emulator = ALEState(data), self._own[i]
                if emulator is None:
                    self._states[i] = state
                else:
                    emulator.restoreState(state)
                self._held[i], self._practice[i] = Action(held), Practice.load(practice)
                self.arrays["practising"][i] = self._practice[i].aside is not None
                self._tell_plan(i)
                self._steps[group] = steps
        self._forget_noise()

    def screen_rgb(self, i: int = 0) -> npt.NDArray[np.uint8]:
        """Colours of the last screen that game `i`'s emulator drew, uint8 (210, 160, 3).

        That is the present one, unless the step put the game to a saved state, such as the first of the next game.
        Only where it has its own emulator.
        """
        emulator = self._own[i]
        assert emulator is not None, "the shared emulator shows whichever game was stepped last"
        return emulator.getScreenRGB()

    def _start(self) -> Moment:
        """Return how every game begins; at first, make the emulator on which games take turns."""
        if self._first is None:
            if not self.arrays:
                self.bind({k: np.zeros(v.shape, v.dtype) for k, v in space_of(self.slots).items()})
            self._shared = new_emulator(self.window)
            self._shared.reset_game()
            self._first = remember(0, self._shared, Action.NOOP)
            if len(self.games) == 1:
                self._own = [self._shared]
        return self._first

    def _save_emulator(self, i: int) -> bytes:
        emulator = self._own[i]
        state = self._states[i] if emulator is None else emulator.cloneState(include_rng=False)
        assert state is not None
        return state.serialize()

    def _swap_in(self, i: int) -> ALEInterface:
        assert self._shared is not None, "reset or restore comes first"
        self._shared.restoreState(self._states[i])  # type: ignore[arg-type]
        return self._shared

    def _settle_one(self) -> None:
        """Give one more game an emulator of its own."""
        for i, state in enumerate(self._states):
            if state is not None:
                self._own[i] = emulator = new_emulator()
                emulator.restoreState(state)
                self._states[i] = None
                break

    def _forget_noise(self) -> None:
        self._repeats = [[]] * len(self.groups)


def new_emulator(window: bool = False) -> ALEInterface:
    """Return a Pong that steps single frames without noise of its own; it still has to be reset."""
    ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    emulator = ALEInterface()
    emulator.setBool("display_screen", window)
    emulator.setInt("random_seed", 0)  # unused without sticky actions
    emulator.setInt("frame_skip", 1)
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("max_num_frames_per_episode", MAX_FRAMES)
    rom = roms.get_rom_path("pong")
    assert rom is not None  # it is part of the ale-py package
    emulator.loadROM(rom)
    return emulator
