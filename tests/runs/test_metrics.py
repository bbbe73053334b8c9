"""What runs write to ``metrics.jsonl`` is what `METRICS` defines: no key more, and none less."""

from collections.abc import Mapping
from typing import Any

import pytest

from fastpong.envs.vector_env import VectorEnv
from fastpong.runs.facts import read_metrics
from fastpong.runs.metrics import METRICS
from fastpong.training.actor import Actor
from fastpong.training.trainer import Trainer
from tests.support.trainings import run, small

STEPS = {"fast": 2400, "late": 4000, "ray": 6000, "ppg": 6000}
"""Steps of runs in which each of these learners learns from a batch or more."""

GROUPS = {"fast": {"", "ppo"}, "late": {"", "ppo"}, "ray": {"", "ray"}, "ppg": {"", "ppg"}}
"""Of which of the runs that `Metric.only` names each has the keys."""


def late_line() -> dict[str, Any]:
    """Train with a late phase that is begun by hand, and return the metrics after two batches."""
    config = small("fast")
    with VectorEnv.of(config, 1) as envs:
        trainer = Trainer(config, Actor(config, envs))
        trainer.learner.begin_late_phase(0)
        trainer.start()
        batches = 0
        while batches < 2:
            trainer.step()
            batches += trainer.learn_if_due()
        trainer.learner.close()
        return trainer.metrics()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[dict[str, Any]]]:
    """All lines of each run."""
    folder = tmp_path_factory.mktemp("runs")
    written = {}
    for name, steps in STEPS.items():
        run(folder / name, small(name, log_interval=600), steps)
        written[name] = read_metrics(folder / name / "metrics.jsonl")
    return {**written, "late": [*written["late"], late_line()]}


def test_every_key_that_a_run_writes_is_defined_and_every_defined_key_is_written(
    lines: Mapping[str, list[dict[str, Any]]],
) -> None:
    for name, of_run in lines.items():
        keys = set().union(*of_run)
        assert len(of_run) >= 2 and int(of_run[-1]["updates"]) >= 1
        assert keys == {key for key, metric in METRICS.items() if metric.only in GROUPS[name]}, name
    assert set().union(*(line for of_run in lines.values() for line in of_run)) == set(METRICS)


def test_every_value_is_a_number_but_the_phase(lines: Mapping[str, list[dict[str, Any]]]) -> None:
    seen: dict[str, bool] = {}
    for of_run in lines.values():
        for key, value in (item for line in of_run for item in line.items()):
            assert value is None or isinstance(value, str if key == "phase" else int | float), (key, value)
            seen[key] = seen.get(key, False) or value is not None
    assert all(seen.values()), "a key that is always null"
    assert [{line["phase"] for line in lines[name] if "phase" in line} for name in ("fast", "late")] == [
        {"early"}, {"early", "late"},
    ]  # fmt: skip
    assert lines["late"][-1]["phase"] == "late"


def test_every_metric_has_a_unit_and_a_meaning() -> None:
    for key, metric in METRICS.items():
        assert len(metric.meaning) > 10 and metric.only in ("", "ppo", "ray", "ppg")
        assert metric.unit or key in ("phase", "learning_rate"), key
