"""What these scripts make of a run's weights: wider networks that play as before, and means."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.research.ship_agent import mean_of
from bench.research.soup import joined
from bench.research.widen import widened
from fastpong.arrays import F32, U8, Arrays
from fastpong.config import Config, changed, make_config
from fastpong.envs.base import COURTS
from fastpong.envs.vector_env import VectorEnv
from fastpong.limits import Limits
from fastpong.runs.checkpoint import load
from fastpong.runs.find import load_weights
from fastpong.runs.folder import RunFolder
from fastpong.show.progress import PlainProgress
from fastpong.training.actor import Actor
from fastpong.training.loop import train
from fastpong.training.trainer import Trainer

ROOT = Path(__file__).parents[2]

SETTINGS = {
    "num_envs": 4, "batch_size": 4 * 32, "minibatch_size": 64, "late_win_rate": 0, "noop_win_rate": 0.0,
    "log_interval": 200, "checkpoint_interval": 400, "eval_games": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "narrow")
    config = make_config("fast", SETTINGS)
    folder.create(config, {})
    train(config, folder, PlainProgress(""), workers=1, limits=Limits(1200))
    return folder


def test_a_wider_network_plays_on_as_before_and_learns(run: RunFolder) -> None:
    config, (arrays, _, _) = run.config(), run.newest()
    wide = widened(arrays, config, 128)
    seen = []
    for settings, state in ((config, arrays), (changed(config, {"hidden_units": 128}), wide)):
        with VectorEnv(4, 1, num_actions=3, images=COURTS) as envs:
            trainer = Trainer(settings, Actor(settings, envs))
            trainer.load_state(state)
            for _ in range(20):
                trainer.step()
            rollout = trainer.rollout
            rows = slice(rollout.rows - 20, rollout.rows)
            seen.append((rollout.arrays.actions[rows].copy(), rollout.arrays.values[rows].copy()))
            before = trainer.policy.weights.arrays["w2"].copy()
            for _ in range(120):
                trainer.step()
                trainer.learn_if_due()
            assert (trainer.policy.weights.arrays["w2"] != before).all()
            trainer.learner.close()
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    np.testing.assert_allclose(seen[0][1], seen[1][1], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="64 hidden units"):
        widened(arrays, config, 64)


def test_a_widened_run_is_resumed(run: RunFolder, tmp_path: Path) -> None:
    new = RunFolder(tmp_path / "wide")
    command = [sys.executable, "-m", "bench.research.widen", str(run.path), str(new.path), "--hidden", "128"]
    subprocess.run(command, check=True, cwd=ROOT)
    config = new.config()
    assert config == changed(run.config(), {"hidden_units": 128})
    assert load_weights(new.path)[0].hidden_units == 128
    assert new.metrics.read_text() == run.metrics.read_text()
    result = train(config, new, PlainProgress(""), workers=1, resume=True, limits=Limits(2000))
    assert result.metrics["steps"] >= 2000


def test_the_mean_of_checkpoints(run: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    paths = RunFolder(tmp_path / "run").checkpoints()
    mean, about = mean_of(paths[:2])
    newest, before = (load(path)[0] for path in paths[:2])
    assert about["steps"] == load(paths[0])[1]["steps"]
    for name, array in mean.items():
        np.testing.assert_allclose(array, (newest[name].astype(np.float64) + before[name]) / 2, rtol=1e-6, atol=1e-9)
    out = tmp_path / "agent.npz"
    command = [
        sys.executable,
        "-m",
        "bench.research.ship_agent",
        str(tmp_path / "run"),
        "--mean",
        "2",
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True, cwd=ROOT)
    _, weights = load_weights(out)
    np.testing.assert_allclose(weights["w2"], mean["policy.w2"], rtol=1e-3, atol=1e-6)


def test_joined_agents_say_the_mean_of_what_each_says(run: RunFolder) -> None:
    """Two wider copies of one agent act alike, and value what they see by units of their own."""
    config, (arrays, _, _) = run.config(), run.newest()
    rng = np.random.default_rng(0)
    agents = [widened(arrays, config, 128, seed) for seed in (1, 2)]
    for agent in agents:
        agent["policy.w2"] = agent["policy.w2"].copy()
        agent["policy.w2"][-1, 64:] += rng.standard_normal(65).astype(np.float32)
    together = joined(agents, 64)
    assert together["policy.w2"].shape == (4, 64 + 2 * 64 + 1)
    np.testing.assert_array_equal(together["policy.kernel"], arrays["policy.kernel"])
    narrow = changed(config, {"hidden_units": 128})
    (mine, actions), (others, _) = (_played(narrow, agent) for agent in agents)
    both, same = _played(changed(config, {"hidden_units": 192}), together)
    np.testing.assert_array_equal(same, actions)
    assert np.abs(mine - others).max() > 0.1
    np.testing.assert_allclose(both, (mine + others) / 2, rtol=1e-4, atol=1e-5)


def _played(config: Config, weights: Arrays) -> tuple[F32, U8]:
    """Return the values and the actions (20, 4) of the first steps of four games."""
    with VectorEnv(4, 1, num_actions=3, images=COURTS) as envs:
        trainer = Trainer(config, Actor(config, envs))
        for name, array in trainer.policy.weights.arrays.items():
            array[:] = weights[f"policy.{name}"]
        trainer.start()
        for _ in range(20):
            trainer.step()
        trainer.close()
        return trainer.rollout.arrays.values[:20].copy(), trainer.rollout.arrays.actions[:20].copy()


def test_joined_agents_are_an_agent(run: RunFolder, tmp_path: Path) -> None:
    wide, parts, out = tmp_path / "wide", [tmp_path / "a.npz", tmp_path / "b.npz"], tmp_path / "both.npz"
    module = [sys.executable, "-m"]
    subprocess.run([*module, "bench.research.widen", str(run.path), str(wide), "--hidden", "128"], check=True, cwd=ROOT)
    for part in parts:
        command = [*module, "bench.research.ship_agent", str(wide), "--mean", "1", "--out", str(part)]
        subprocess.run(command, check=True, cwd=ROOT)
    command = [*module, "bench.research.soup", *map(str, parts), "--shared", "64", "--out", str(out)]
    subprocess.run(command, check=True, cwd=ROOT)
    config, weights = load_weights(out)
    assert config.hidden_units == 192
    alone, _ = load(parts[0])
    np.testing.assert_allclose(weights["w1"][:, :128], alone["policy.w1"], rtol=2e-3, atol=1e-6)
    np.testing.assert_array_equal(weights["w1"][:, 128:], alone["policy.w1"][:, 64:])
    np.testing.assert_allclose(weights["w2"][:, 128:-1], alone["policy.w2"][:, 64:-1] / 2, rtol=2e-3, atol=1e-6)


def test_a_run_goes_on_from_an_agent(run: RunFolder, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "on")
    command = [sys.executable, "-m", "bench.research.go_on", str(run.best), str(folder.path), "--scale", "0.5"]
    subprocess.run([*command, "--set", "batch_size=256"], check=True, cwd=ROOT)
    config, (arrays, facts, _) = folder.config(), folder.newest()
    assert config.batch_size == 256 and facts.steps == 0
    agent, _ = load(run.best)
    np.testing.assert_array_equal(arrays["policy.w1"], agent["policy.w1"])
    scale = np.array([0.5, 0.5, 0.5, 1.0], np.float32)[:, None]  # three logits and the value
    np.testing.assert_array_equal(arrays["policy.w2"], agent["policy.w2"] * scale)
    train(config, folder, PlainProgress(""), workers=1, limits=Limits(1200), resume=True)
    after, _, _ = folder.newest()
    assert not np.array_equal(after["policy.w1"], arrays["policy.w1"])
