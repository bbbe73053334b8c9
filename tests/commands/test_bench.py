import contextlib
import importlib.util
from pathlib import Path

import pytest

from bench import learner
from bench.ablation import Arm
from bench.common import output_of
from fastpong.commands.bench import BARE, NAMES, bench, table
from fastpong.commands.speeds import training
from fastpong.config import make_config
from fastpong.training.actor import STAGES


def test_every_speed_is_measured_in_every_round() -> None:
    results = bench(make_config("karpathy", {"num_envs": 3, "batch_games": 1, "hidden_units": 8}), 1, 0.1, 2)
    assert {"ale", "console", "vector_env", "train", "stock_async", "ale_vector", "stages"} <= results.keys()
    left_out = {"train_late"} | (set() if importlib.util.find_spec("envpool") else {"envpool"})
    assert set(results["rounds"]) == set(NAMES) - left_out  # REINFORCE has no late phase
    for name in results["rounds"]:
        assert len(results["rounds"][name]) == 2 and min(results["rounds"][name]) > 0
        assert min(results["rounds"][name]) <= results[name] <= max(results["rounds"][name])
    *rows, end = table(results)
    assert end == f"training runs at {results['ratios']['train']:.2f} times the speed of bare ALE"
    speeds = [float(row.split()[0].replace(",", "")) for row in rows[1 : 1 + len(results["rounds"])]]
    assert speeds == sorted(speeds, reverse=True) and "times ALE" in rows[0] and "…" in rows[1]
    assert ("busy" in rows[-1]) == (max(results["rounds"]["ale"]) > 1.15 * min(results["rounds"]["ale"]))
    for key, bare in BARE.items():
        assert results[key].keys() == results["rounds"].keys() and results[key][bare] == 1.0
        pairs = zip(results["rounds"]["train"], results["rounds"][bare], strict=True)
        assert abs(results[key]["train"] - sum(a / b for a, b in pairs) / 2) < 0.01 * results[key]["train"]
    assert tuple(results["stages"]) == STAGES
    assert results["stages"]["env_wait"] > 0 and results["stages"]["preprocess"] > 0


def test_training_is_measured_in_the_late_phase_as_well() -> None:
    config = make_config("fast", {"num_envs": 4, "batch_size": 64})
    results = bench(config, 1, 0.3, 1, ("train", "train_late"))
    assert set(results["rounds"]) == {"ale", "console", "train", "train_late"}
    with contextlib.ExitStack() as stack:
        measure, trainer = training(stack, config, 1, late=True)
        measure(0.5)
        assert trainer.learner.statistics["phase"] == "late"


def test_only_what_is_asked_for_is_measured() -> None:
    results = bench(
        make_config("karpathy", {"num_envs": 2, "batch_games": 1, "hidden_units": 8}), 1, 0.05, 1, (), engine="ale"
    )
    assert set(results["rounds"]) == set(results["ratios"]) == {"ale", "console", "train"}
    assert results["settings"]["engine"] == "ale"


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="it is measured beside PyTorch: .ci/torch")
def test_the_learner_is_measured_and_its_gradient_is_the_dense_one() -> None:
    found = learner.measure(hidden=64, envs=4, skip=3, rounds=1)
    assert {"Adam", "update, 1 thread", "dense NumPy", "PyTorch", "dense / sparse"} <= found.keys()
    assert all(value > 0 for value in found.values())


def test_an_arm_of_another_checkout_runs_its_code(tmp_path: Path) -> None:
    """Whatever is installed, and wherever the command is given."""
    (tmp_path / "checkout/fastpong").mkdir(parents=True)
    (tmp_path / "checkout/fastpong/__main__.py").write_text('import sys; print("the other one:", sys.argv[1])')
    arm = Arm("rate", source=str(tmp_path / "checkout"))
    assert output_of(arm.fastpong("--version")) == "the other one: --version\n"
