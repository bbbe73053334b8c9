"""What the scripts in bench/ make of a run's weights: wider networks that play as before, and means."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from bench.ship_agent import mean_of
from bench.soup import joined
from bench.widen import widened
from fastpong.checkpoint import Arrays, RunFolder, load, load_weights
from fastpong.config import Config, changed, make_config
from fastpong.games import Games
from fastpong.minibatch import views_of
from fastpong.report import PlainReport
from fastpong.train import train
from fastpong.trainer import Trainer

SETTINGS = {"envs": 4, "hidden": 32, "batch_steps": 4 * 32, "minibatch": 64, "critic": 2, "sharpen_latest": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "narrow")
    config = make_config(
        "fast", {**SETTINGS, "log_steps": 200, "checkpoint_steps": 400, "keep_checkpoints": 3, "eval_games": 0}
    )
    folder.create(config, {})
    train(config, folder, PlainReport(""), workers=1, max_steps=1200)
    return folder


def test_a_wider_network_plays_on_as_before_and_learns(run: RunFolder) -> None:
    config, (arrays, _, _) = run.config(), run.newest()
    assert int(arrays["learner.critic_batches"]) >= config.critic
    wide = widened(arrays, config, 48)
    seen = []
    for settings, state in ((config, arrays), (changed(config, {"hidden": 48}), wide)):
        with Games(4, 1, actions=3) as games:
            trainer = Trainer(settings, games)
            trainer.load_state(state)
            for _ in range(20):
                trainer.advance()
            rollout, critic = trainer.rollout, trainer.learner.critic  # type: ignore[union-attr]
            assert critic is not None
            rows = slice(rollout.rows - 20, rollout.rows)
            samples = np.arange(4 * rows.start, 4 * rows.stop)
            values = critic.values(rollout, views_of(rollout, samples, config.frames, critic.adam.both), samples)
            seen.append((rollout.actions[rows].copy(), rollout.values[rows].copy(), values))
            before = trainer.policy.arrays["w2"].copy()
            for _ in range(40):
                trainer.advance()
                trainer.learn_if_due()
            assert (trainer.policy.arrays["w2"] != before).all()
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    np.testing.assert_allclose(seen[0][1], seen[1][1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(seen[0][2], seen[1][2], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="32 hidden units"):
        widened(arrays, config, 32)


def test_a_widened_run_is_resumed(run: RunFolder, tmp_path: Path) -> None:
    new = RunFolder(tmp_path / "wide")
    command = [sys.executable, "-m", "bench.widen", str(run.path), str(new.path), "--hidden", "64"]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
    config = new.config()
    assert config == changed(run.config(), {"hidden": 64})
    assert load_weights(new.path)[0].hidden == 64
    assert new.metrics.read_text() == run.metrics.read_text()
    result = train(config, new, PlainReport(""), workers=1, resume=True, max_steps=1600)
    assert result.metrics["steps"] >= 1600


def test_the_mean_of_checkpoints(run: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    paths = RunFolder(tmp_path / "run").checkpoints()
    mean, about = mean_of(paths[:2])
    newest, before = (load(path)[0] for path in paths[:2])
    assert about["steps"] == load(paths[0])[1]["steps"]
    for name, array in mean.items():
        np.testing.assert_allclose(array, (newest[name].astype(np.float64) + before[name]) / 2, rtol=1e-6, atol=1e-9)
    out = tmp_path / "agent.npz"
    command = [sys.executable, "-m", "bench.ship_agent", str(tmp_path / "run"), "--mean", "2", "--out", str(out)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[1])
    _, weights = load_weights(out)
    np.testing.assert_allclose(weights["w2"], mean["policy.w2"], rtol=1e-3, atol=1e-6)


def test_joined_agents_say_the_mean_of_what_each_says(run: RunFolder) -> None:
    """Two wider copies of one agent act alike, and value what they see by units of their own."""
    config, (arrays, _, _) = run.config(), run.newest()
    rng = np.random.default_rng(0)
    agents = [widened(arrays, config, 48, seed) for seed in (1, 2)]
    for agent in agents:
        agent["policy.w2"] = agent["policy.w2"].copy()
        agent["policy.w2"][-1, 32:] += rng.standard_normal(17).astype(np.float32)
    together = joined(agents, 32)
    assert together["policy.w2"].shape == (4, 32 + 2 * 16 + 1)
    np.testing.assert_array_equal(together["policy.kernel"], arrays["policy.kernel"])
    narrow = changed(config, {"hidden": 48})
    (mine, actions), (others, _) = (_played(narrow, agent) for agent in agents)
    both, same = _played(changed(config, {"hidden": 64}), together)
    np.testing.assert_array_equal(same, actions)
    assert np.abs(mine - others).max() > 0.1
    np.testing.assert_allclose(both, (mine + others) / 2, rtol=1e-4, atol=1e-5)


def _played(config: Config, weights: Arrays) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
    """Return the values and the actions (20, 4) of the first steps of four games."""
    with Games(4, 1, actions=3) as games:
        trainer = Trainer(config, games)
        for name, array in trainer.policy.arrays.items():
            array[:] = weights[f"policy.{name}"]
        trainer.start()
        for _ in range(20):
            trainer.advance()
        return trainer.rollout.values[:20].copy(), trainer.rollout.actions[:20].copy()


def test_joined_agents_are_an_agent(run: RunFolder, tmp_path: Path) -> None:
    root, parts, out = Path(__file__).parents[1], [tmp_path / "a.npz", tmp_path / "b.npz"], tmp_path / "both.npz"
    for number, part in enumerate(parts, 1):
        command = [sys.executable, "-m", "bench.ship_agent", str(run.path), "--mean", str(number), "--out", str(part)]
        subprocess.run(command, check=True, cwd=root)
    command = [sys.executable, "-m", "bench.soup", *map(str, parts), "--shared", "16", "--out", str(out)]
    subprocess.run(command, check=True, cwd=root)
    config, weights = load_weights(out)
    assert config.hidden == 48
    first, second = (load_weights(part)[1] for part in parts)
    assert (first["w1"] != second["w1"]).any()
    np.testing.assert_allclose(weights["w1"][:, :16], (first["w1"] + second["w1"])[:, :16] / 2, rtol=2e-3, atol=1e-6)
    np.testing.assert_array_equal(weights["w1"][:, 32:], second["w1"][:, 16:])
    np.testing.assert_allclose(weights["w2"][:, 32:-1], second["w2"][:, 16:-1] / 2, rtol=2e-3, atol=1e-6)


def test_a_run_goes_on_from_an_agent(run: RunFolder, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "on")
    command = [sys.executable, "bench/go_on.py", str(run.best), str(folder.path), "--greed", "0.5"]
    subprocess.run([*command, "--set", "batch_steps=256", "--set", "eval_games=0"], check=True)
    config, (arrays, about, _) = folder.config(), folder.newest()
    assert config.batch_steps == 256 and about["steps"] == 0
    agent, _ = load(run.best)
    np.testing.assert_array_equal(arrays["policy.w1"], agent["policy.w1"])
    scale = np.array([0.5, 0.5, 0.5, 1.0], np.float32)[:, None]  # three logits and the value
    np.testing.assert_array_equal(arrays["policy.w2"], agent["policy.w2"] * scale)
    # It counts as having won, so the critic learns after the first batch.
    train(config, folder, PlainReport(""), workers=1, max_steps=600, resume=True)
    after, _, _ = folder.newest()
    assert int(after["learner.critic_batches"]) == 2
    assert not np.array_equal(after["policy.w1"], arrays["policy.w1"])
