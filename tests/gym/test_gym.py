"""``fastpong/Pong-v0`` through gymnasium's own checks and wrappers, and against ``ALE/Pong-v5``."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation, RecordVideo
from gymnasium.wrappers import vector as wrappers

import fastpong
from fastpong.errors import EnvError, UsageError
from fastpong.gym import PongEnv, PongVectorEnv
from fastpong.gym.observations import KINDS
from tests.support.interruption import Interruption

gymnasium.register_envs(ale_py)
ID = "fastpong/Pong-v0"


def make(num_envs: int = 3, **options: Any) -> PongVectorEnv:
    envs = gymnasium.make_vec(ID, num_envs=num_envs, **options)
    assert isinstance(envs.unwrapped, PongVectorEnv)
    return envs.unwrapped


@pytest.mark.parametrize("obs", KINDS)
def test_gymnasiums_check(obs: str, engine: str) -> None:
    env = gymnasium.make(ID, obs=obs, engine=engine, render_mode="rgb_array")
    check_env(env.unwrapped)
    assert env.spec is not None
    env.reset()
    picture: Any = env.render()
    assert picture.shape == (210, 160, 3)


@pytest.mark.parametrize(("obs", "engine"), [*((obs, "console") for obs in KINDS), ("stack84", "ale")])
def test_a_vector_of_games_is_the_games_alone(obs: str, engine: str) -> None:
    """One or two subprocesses and either way to begin anew: observations, rewards, ends, and what is told of games."""
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 6, (230, 3))
    modes = (AutoresetMode.SAME_STEP, 1), (AutoresetMode.SAME_STEP, 2), (AutoresetMode.NEXT_STEP, 2)
    firsts, lasts, facts = [], [], []
    for mode, workers in modes:
        envs = make(obs=obs, workers=workers, frame_skip=16, autoreset_mode=mode, engine=engine)
        seen, _ = envs.reset(seed=5)
        assert envs.observation_space.contains(seen)
        played, ends = [seen], []
        for choice in actions:
            seen, rewards, terminated, truncated, info = envs.step(choice)
            played += [seen, rewards, terminated, truncated]
            if obs == "screen":  # also what `render` draws
                np.testing.assert_array_equal(envs.screens(), seen)
            told = info["final_info"] if "final_info" in info else info
            for env in np.flatnonzero(terminated).tolist():
                last = info["final_obs"][env] if mode == AutoresetMode.SAME_STEP else seen[env]
                ends.append((last, [int(told[name][env]) for name in ("score", "opponent", "steps")]))
        envs.close()
        firsts.append(played)
        lasts.append(ends)
        facts.append([fact for _, fact in ends])
    for a, b in zip(firsts[0], firsts[1], strict=True):
        np.testing.assert_array_equal(a, b)
    first_end = next(t for t in range(230) if firsts[0][4 * t + 3].any())
    for t in range(4 * first_end + 1):  # until then both ways are the same
        np.testing.assert_array_equal(firsts[0][t], firsts[2][t])
    for (a, fact), (b, other) in zip(lasts[0][:1], lasts[2][:1], strict=True):
        np.testing.assert_array_equal(a, b)
        assert fact == other
        assert max(fact[:2]) == 21
    env = np.flatnonzero(firsts[2][4 * first_end + 3])[0]
    begins = firsts[2][4 * first_end + 5]  # a step later
    np.testing.assert_array_equal(begins[env], firsts[0][0][env])
    assert facts[0] == facts[1]


def test_without_sticky_actions_it_is_ale_with_gymnasiums_preprocessing(engine: str) -> None:
    """A whole game, in all bits, but for the last image: gymnasium does not take one where a game ends."""
    theirs = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0)
    stock = FrameStackObservation(AtariPreprocessing(theirs, noop_max=0), 4)
    grey = gymnasium.make(ID, obs="stack84", repeat_action_probability=0.0, engine=engine)
    colour = gymnasium.make(ID, obs="rgb", repeat_action_probability=0.0, engine=engine)
    rng, steps, over = np.random.default_rng(3), 0, False
    expected, _ = stock.reset(seed=0)
    stacks, _ = grey.reset(seed=0)
    pictures, _ = colour.reset(seed=0)
    while not over:
        np.testing.assert_array_equal(stacks, expected)
        np.testing.assert_array_equal(pictures, theirs.unwrapped.ale.getScreenRGB())  # type: ignore[attr-defined]
        action = int(rng.integers(6))
        expected, reward, over, truncated, _ = stock.step(action)
        stacks, *outcome, info = grey.step(action)
        assert outcome == [reward, over, truncated]
        pictures, *outcome, _ = colour.step(action)
        assert outcome == [reward, over, truncated]
        steps += 1
    assert steps > 700
    assert max(info["score"], info["opponent"]) == 21 and info["steps"] == steps
    np.testing.assert_array_equal(stacks[:-1], expected[:-1])


def test_actions_mean_what_ales_do() -> None:
    ale = gymnasium.make("ALE/Pong-v5").unwrapped
    assert make(1).get_action_meanings() == ale.get_action_meanings()  # type: ignore[attr-defined]
    assert PongEnv(actions=3).get_action_meanings() == ["RIGHT", "LEFT", "NOOP"]


def test_a_seed_repeats_itself_and_no_seed_does_not() -> None:
    def play(seed: int | None) -> Any:
        envs.reset(seed=seed)
        return np.array([envs.step(np.full(3, 2 + t // 30 % 2))[0][:, ::5, ::5] for t in range(90)])

    envs = make()
    first = play(8)
    np.testing.assert_array_equal(play(8), first)
    assert (play(None) != first).any()
    assert (play(9) != first).any()
    envs.close()


@pytest.mark.parametrize("keep", [lambda seen: seen, lambda seen: seen[1:], memoryview], ids=["all", "view", "buffer"])
def test_observations_are_the_callers_to_keep(keep: Callable[[Any], Any]) -> None:
    """Whole, or in parts, or as another library keeps their memory."""
    envs = make()
    seen, _ = envs.reset(seed=1)
    kept, copies = [], []
    for _ in range(20):
        kept.append(keep(seen))
        copies.append(np.array(kept[-1]))
        seen = envs.step(np.full(3, 2))[0]
    for one, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(one, copy)
    envs.close()


def test_memory_is_used_again_if_nobody_keeps_it_or_with_copy_false_always() -> None:
    envs = make()
    seen, _ = envs.reset(seed=1)
    places = set()
    for _ in range(20):
        places.add(seen.ctypes.data)
        seen = envs.step(np.full(3, 2))[0]
    assert len(places) <= 3
    envs.close()
    envs = make(copy=False)
    before, _ = envs.reset(seed=1)
    assert envs.step(np.full(3, 2))[0] is before
    envs.close()


def test_wrappers_of_gymnasium() -> None:
    envs: Any = gymnasium.make_vec(ID, num_envs=3, obs="karpathy")
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    envs = wrappers.NormalizeReward(wrappers.RecordEpisodeStatistics(envs))
    envs = wrappers.NormalizeObservation(wrappers.FlattenObservation(envs))
    seen, _ = envs.reset(seed=2)
    assert seen.shape == (3, 6400)
    finished = []
    for _ in range(1000):
        _, _, terminated, _, info = envs.step(np.full(3, 2))
        if terminated.any():
            finished += info["episode"]["r"][terminated].tolist()
    assert len(finished) >= 3
    assert all(-21 <= score <= -10 for score in finished)
    envs.close()


def test_a_video_is_recorded(tmp_path: Path) -> None:
    env: Any = RecordVideo(gymnasium.make(ID, render_mode="rgb_array"), str(tmp_path / "film"), video_length=30)
    env.reset(seed=0)
    for _ in range(40):
        env.step(0)
    env.close()
    assert next((tmp_path / "film").glob("*.mp4")).stat().st_size > 1000


def test_pictures_of_all_games() -> None:
    envs = make(render_mode="rgb_array", obs="court")
    envs.reset(seed=0)
    pictures = envs.render()
    assert [picture.shape for picture in pictures] == [(210, 160, 3)] * 3
    envs.close()


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        (np.zeros(2, int), "one for each of the 3 games"),
        (np.zeros(3), "integers"),
        (np.array([0, 1, 6]), "an action is 0 … 5"),
        (np.array([0, -1, 5]), "an action is 0 … 5"),
        (None, "integers"),
    ],
)
def test_wrong_actions(actions: Any, said: str) -> None:
    envs = make()
    envs.reset()
    with pytest.raises(UsageError, match=said):
        envs.step(actions)
    envs.step(np.zeros(3, int))  # and it goes on
    envs.close()


def test_wrong_use_is_told_and_leaves_nothing_behind() -> None:
    envs, env = make(), PongEnv()
    with pytest.raises(UsageError, match="reset comes before step"):
        envs.step(np.zeros(3, int))
    with pytest.raises(UsageError, match="reset comes before step"):
        env.step(0)
    with pytest.raises(UsageError, match="render_mode"):
        envs.render()
    processes = envs._envs.processes  # type: ignore[attr-defined]
    envs.close()
    envs.close()
    assert not any(process.is_alive() for process in processes)
    for closed in (lambda: envs.step(np.zeros(3, int)), envs.reset):
        with pytest.raises(EnvError, match="is closed"):
            closed()
    env.close()
    with pytest.raises(EnvError, match="is closed"):
        env.reset()


def play_three(envs: Any, shape: tuple[int, ...]) -> Any:
    return [envs.step(np.full(shape, 2) if shape else 2)[0].copy() for _ in range(3)]


@pytest.mark.parametrize("call", ["step", "reset"])
@pytest.mark.parametrize("env", [PongEnv, lambda: make(32, workers=2, obs="stack84")], ids=["single", "vector"])
def test_ctrl_c_may_come_at_any_line(env: Callable[[], Any], call: str) -> None:
    """A reset then plays the games of a fresh env; a step without it says that it is needed, or goes on."""
    envs, shape = env(), () if env is PongEnv else (32,)
    first, _ = envs.reset(seed=7)
    expected = [first.copy(), *play_three(envs, shape)]
    line, step = 0, 1 if env is PongEnv else 11
    while True:
        line += step
        with Interruption(line) as interruption:
            try:
                envs.step(np.full(shape, 3) if shape else 3) if call == "step" else envs.reset(seed=8)
            except KeyboardInterrupt:
                pass
        if interruption.left > 0:
            break  # there are no more lines
        try:
            envs.step(np.full(shape, 3) if shape else 3)
        except EnvError as error:
            assert "call reset" in str(error)
        first, _ = envs.reset(seed=7)
        np.testing.assert_array_equal([first, *play_three(envs, shape)], expected)
    assert line > 15
    if shape:
        assert envs._envs.losses.count == 0
    envs.close()


def test_nothing_depends_on_assertions() -> None:
    """Python -O leaves them out."""
    for package in ("envs", "gym"):
        for path in (Path(fastpong.__file__).parent / package).glob("*.py"):
            assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(path.read_text()))), path


SCRIPT = """
import gymnasium, numpy, fastpong.gym
envs = gymnasium.make_vec("fastpong/Pong-v0", num_envs=4, obs="court")
envs.reset(seed=0)
print(envs.step(numpy.zeros(4, int))[0].sum())
"""


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_script_needs_no_guard(how: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, *(["script.py"] if how == "file" else ["-"])]
    stdin = SCRIPT if how == "stdin" else ""
    done = subprocess.run(command, cwd=tmp_path, input=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
    assert done.stderr == ""


@pytest.mark.parametrize("imports", ["import fastpong, gymnasium", "import gymnasium, fastpong"])
def test_to_import_fastpong_is_enough_and_loads_nothing(imports: str, tmp_path: Path) -> None:
    (line,) = re.findall(r"gymnasium\.make_vec\(.*?\)", (Path(__file__).parents[2] / "README.md").read_text())
    light = "import fastpong, sys; assert not {'gymnasium', 'numpy', 'numba'} & {*sys.modules}"
    code = f"{imports}; envs = {line}; print(envs.num_envs); envs.close()"
    command = [sys.executable, "-c", f"{light}\n{code}" if imports.startswith("import fastpong") else code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "64\n", "")
