"""The promise of the whole: how the games are spread, or whether a run was interrupted, changes no bit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong.checkpoint import RunFolder, save
from fastpong.config import Config, make_config
from fastpong.errors import UsageError
from fastpong.games import Games
from fastpong.report import PlainReport
from fastpong.train import train
from fastpong.trainer import STAGES, Trainer

# Games that last 800 steps or more: a few whole ones are needed for an update.
SMALL: dict[str, Any] = {
    "envs": 6,
    "batch_games": 2,
    "hidden": 32,
    "seed": 5,
    "target": 22,
    "minibatch": 256,
    "eval_games": 0,
}
SMALL |= {"practice_points": 0.0, "practice_shifted": 0.5}  # from the start, so that they are part of what is tested
SMALL |= {"batch_steps": 6 * 128, "pass_share": 0.7}


def trained(config: Config, workers: int, groups: int, steps: int) -> Trainer:
    with Games(config.envs, workers, config.seed, actions=config.actions, groups=groups) as games:
        trainer = Trainer(config, games)
        trainer.start()
        for _ in range(steps):
            trainer.advance()
            trainer.learn_if_due()
        return trainer


@pytest.mark.parametrize(("preset", "steps"), [("fast", 400), ("karpathy", 1250)])
def test_workers_and_groups_change_no_bit(preset: str, steps: int) -> None:
    config = make_config(preset, SMALL)
    one, other = (trained(config, workers, groups, steps) for workers, groups in ((1, 1), (3, 2)))
    assert one.learner.updates >= 2
    np.testing.assert_array_equal(one.policy.weights, other.policy.weights)
    assert one.tally.score == other.tally.score
    assert one.tally.running == other.tally.running
    assert one.learner.statistics == other.learner.statistics
    assert one.learner.statistics.get("practised", 0.0) > 0.0 or preset != "fast"


def test_every_game_and_step_is_counted() -> None:
    config = make_config("karpathy", {"envs": 3, "batch_games": 1, "hidden": 10})
    with Games(3, 1) as games:
        trainer = Trainer(config, games)
        trainer.start()
        assert not trainer.learn_if_due()
        used = 0
        for step in range(1, 1201):
            trainer.advance()
            assert trainer.tally.steps == 3 * (step - 1)
            begins = trainer.rollout.begins.copy()
            rows = trainer.rollout.rows
            if trainer.learn_if_due():
                used += 3 * (rows - trainer.rollout.rows) + int((trainer.rollout.begins - begins).sum())
        assert trainer.tally.games >= 2
        # What no batch has used is still there.
        left = 3 * (trainer.rollout.rows - 1) - int(trainer.rollout.begins.sum())
        assert used + left == trainer.tally.steps
        assert all(trainer.seconds[stage] > 0 for stage in STAGES)


def run(folder: Path, config: Config, steps: int, workers: int = 2, resume: bool = False) -> Any:
    run_folder = RunFolder(folder)
    if not resume:
        run_folder.create(config, {})
    return train(config, run_folder, PlainReport(""), workers=workers, resume=resume, max_steps=steps)


@pytest.mark.parametrize(("preset", "steps"), [("fast", 4000), ("karpathy", 8000), ("ray", 8000)])
def test_an_interrupted_run_goes_on_bit_for_bit(preset: str, steps: int, tmp_path: Path) -> None:
    every = 3 * steps // 8
    config = make_config(preset, {**SMALL, "log_steps": 500, "checkpoint_steps": every, "keep_checkpoints": 9})
    run(tmp_path / "whole", config, steps)
    run(tmp_path / "parts", config, steps * 5 // 9)
    run(tmp_path / "parts", config, steps, workers=3, resume=True)
    whole, about, _ = RunFolder(tmp_path / "whole").newest()
    parts, about_parts, _ = RunFolder(tmp_path / "parts").newest()
    assert int(whole["learner.updates"]) >= 2
    assert whole.keys() == parts.keys()
    for name in whole.keys() - {"tally.counts"}:
        np.testing.assert_array_equal(whole[name], parts[name], err_msg=name)
    # Points are counted since the last line of the metrics.
    np.testing.assert_array_equal(np.delete(whole["tally.counts"], [3, 4]), np.delete(parts["tally.counts"], [3, 4]))
    assert about["score"] == about_parts["score"]
    names = [path.name for path in RunFolder(tmp_path / "whole").checkpoints()]
    assert len(names) == 3  # at 3/8 and 6/8 of the steps, and at the end


def test_a_run_of_another_version_is_told(tmp_path: Path) -> None:
    config = make_config("fast", SMALL)
    run(tmp_path / "run", config, 200)
    folder = RunFolder(tmp_path / "run")
    arrays, about, _ = folder.newest()
    del arrays["learner.square"]
    save(folder.checkpoints()[0], arrays, about)
    with pytest.raises(UsageError, match="another version"):
        run(tmp_path / "run", config, 400, resume=True)


def test_metrics_are_the_contracts(tmp_path: Path) -> None:
    config = make_config("karpathy", {**SMALL, "log_steps": 1200})
    result = run(tmp_path / "run", config, 6200)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1] == result.metrics and result.reason == "steps"
    assert [line["steps"] for line in lines] == [1200, 2400, 3600, 4800, 6000, 6204 - 6204 % 6]
    assert {"wall_s", "steps", "steps_per_s", "games", "score", "point_rate"} <= lines[0].keys()
    assert lines[0]["score"] is None and lines[-1]["score"] < -15
    assert all(a["wall_s"] < b["wall_s"] for a, b in zip(lines, lines[1:], strict=False))
    assert all(0 <= line["point_rate"] <= 1 for line in lines)
