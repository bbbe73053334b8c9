import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from safetensors import safe_open

from fastpong import dense
from fastpong.agent import Agent, load
from fastpong.commands.export import inputs_in_words, run
from fastpong.config import make_config
from fastpong.errors import FastpongError, UsageError
from fastpong.policy import make_policy


@pytest.fixture(scope="module")
def shipped() -> Agent:
    return load()


def session(agent: Agent, folder: Path) -> Any:
    return onnxruntime.InferenceSession(str(run(agent, "onnx", folder / "agent.onnx")))


def test_onnx_computes_what_the_agent_does(shipped: Agent, tmp_path: Path, golden: dict[str, Any]) -> None:
    """On real screens; tests/test_agent.py compares the agent with the kernels."""
    model, screens = session(shipped, tmp_path), golden["screens"][20:40]
    shipped.reset()
    actions = [shipped.act(screen) for screen in screens]
    images, side = shipped.inputs(screens[-1])
    last = [{2: 0, 3: 1, 0: 2}[action] for action in actions[:-4:-1]]  # up, down, no-op; as its doc_string has it
    assert np.flatnonzero(side).tolist() == [0, *(1 + 3 * k + action for k, action in enumerate(last))]
    assert model.get_modelmeta().description == inputs_in_words(shipped)
    assert "images (n, 3, 160, 80): the newest first" in inputs_in_words(shipped)
    logits, probabilities, value = model.run(["logits", "probabilities", "value"], {"images": images, "side": side})
    assert json.loads(model.get_modelmeta().custom_metadata_map["config"])["hidden_units"] == 320
    np.testing.assert_allclose(probabilities, dense.softmax(logits), atol=1e-6)
    np.testing.assert_allclose(probabilities[0], shipped.probabilities(screens[-1]), atol=1e-4)
    np.testing.assert_allclose(value[0, 0], shipped.value(screens[-1]), atol=1e-3)


def test_onnx_of_a_reference_program(tmp_path: Path) -> None:
    config = make_config("karpathy", {"hidden_units": 8})
    agent = Agent(config, make_policy(config).weights.arrays)
    changes = np.random.default_rng(0).integers(-1, 2, (5, 6400)).astype(np.float32)
    logits = session(agent, tmp_path).run(["logits"], {"changes": changes})[0]
    np.testing.assert_allclose(logits, dense.mlp_logits(agent.weights, changes), atol=1e-4)


def test_safetensors_has_the_weights(shipped: Agent, tmp_path: Path) -> None:
    with safe_open(str(run(shipped, "safetensors", tmp_path / "x.safetensors")), "numpy") as file:
        assert json.loads(file.metadata()["config"])["preset"] == "fast"
        for name, array in shipped.weights.items():
            np.testing.assert_array_equal(file.get_tensor(name), array)


def test_wrong_usage(shipped: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="one of onnx, safetensors"):
        run(shipped, "torch", None)
    with pytest.raises(UsageError, match="no folder"):
        run(shipped, "onnx", tmp_path / "no" / "x.onnx")
    with pytest.raises(FastpongError, match="cannot write"):
        run(shipped, "onnx", tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(FastpongError, match="needs onnx"):
        run(shipped, "onnx", tmp_path / "x.onnx")
