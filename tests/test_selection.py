"""The best weights of a run are those that play best, not those of the luckiest window."""

from pathlib import Path

import numpy as np

from fastpong.checkpoint import RunFolder, load
from fastpong.config import Config, make_config
from fastpong.policy import make_policy
from fastpong.selection import choose_best


def candidate(config: Config, run: RunFolder, steps: int, score: float | None, always: int, keep: int = 3) -> None:
    """Add weights that always take the same action."""
    policy = make_policy(config)
    policy.weights[:] = 0.0
    policy.arrays["w2"][always, -1] = 1.0
    weights = {f"policy.{name}": array for name, array in policy.state().items()}
    run.add_candidate(steps, keep, weights, {"steps": steps, "score": score})


def test_the_candidate_that_plays_best_becomes_best(tmp_path: Path) -> None:
    config = make_config("fast", {"hidden": 16, "eval_games": 2})
    run = RunFolder(tmp_path / "run")
    run.create(config, {})
    candidate(config, run, 100, -3.0, always=0)
    assert choose_best(config, run, 1, print) is None, "one candidate is no choice"
    candidate(config, run, 200, 20.0, always=1)  # luckier in training
    facts = choose_best(config, run, 1, print)
    assert facts is not None
    means = {entry["steps"]: entry["mean"] for entry in facts["candidates"]}
    assert set(means) == {100, 200} and means[facts["steps"]] == max(means.values())
    assert facts["games"] == 4 and -21 <= facts["mean"] <= 21
    arrays, about = load(run.best)
    assert about["steps"] == facts["steps"] and about["evaluation"] == facts
    assert arrays["policy.w2"][0 if facts["steps"] == 100 else 1, -1] == 1


def test_a_damaged_candidate_does_not_take_part(tmp_path: Path) -> None:
    config = make_config("fast", {"hidden": 16, "eval_games": 1})
    run = RunFolder(tmp_path / "run")
    run.create(config, {})
    for steps in (100, 200):
        candidate(config, run, steps, 0.0, always=0)
    run.candidates()[0].write_bytes(b"half a file")
    notes: list[str] = []
    assert choose_best(config, run, 1, notes.append) is None
    assert len(notes) == 1 and "does not take part" in notes[0]


def test_the_newest_and_the_best_few_are_kept(tmp_path: Path) -> None:
    config = make_config("fast", {"hidden": 32})
    run = RunFolder(tmp_path / "run")
    run.create(config, {})
    for steps, score in ((1, None), (2, 3.0), (3, -5.0), (4, 4.0), (5, -20.0)):
        candidate(config, run, steps, score, always=0, keep=2)
    kept = [int(np.asarray(load(path)[1]["steps"])) for path in run.candidates()]
    assert kept == [2, 4, 5]
