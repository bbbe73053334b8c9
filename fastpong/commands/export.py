"""An agent's network as a file for other programs: ONNX, which computes, or safetensors, which holds the weights."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from fastpong.agent import Agent
from fastpong.arrays import F32, Arrays
from fastpong.dense import CELL, GRID
from fastpong.errors import FastpongError, UsageError, missing
from fastpong.pong import COURT, COURT_TOP

KINDS = ("onnx", "safetensors")


def run(agent: Agent, kind: str, out: Path | None) -> Path:
    """Write an agent and return the file.

    Raises `UsageError` for an unknown kind or folder, `FastpongError` if a library is missing or the file cannot be
    written.
    """
    if kind not in KINDS:
        raise UsageError(f"--to is one of {', '.join(KINDS)}, not '{kind}'")
    out = out or Path(f"agent.{kind}")
    if not out.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {out.absolute().parent} to write to")
    try:
        data = _onnx(agent) if kind == "onnx" else _safetensors(agent)
        out.write_bytes(data)
    except ModuleNotFoundError as error:
        raise missing(f"--to {kind}", str(error.name), "export") from None
    except OSError as error:
        raise FastpongError(f"cannot write {out}: {error.strerror or error}") from None
    return out


def _about(agent: Agent) -> str:
    return json.dumps(dataclasses.asdict(agent.config))


def _safetensors(agent: Agent) -> bytes:
    from safetensors.numpy import save

    weights = {name: np.ascontiguousarray(array) for name, array in agent.weights.items()}
    data: bytes = save(weights, metadata={"config": _about(agent)})
    return data


def whole_kernel(kernel: F32) -> F32:
    """Return the kernel of an ordinary convolution, float32 (16, frames, 16, 8), from that of four positions."""
    frames, channels = kernel.shape[0], kernel.shape[3] // 4
    whole = np.zeros((channels, frames, 2 * CELL[0], 2 * CELL[1]), np.float32)
    for part in range(4):
        top, left = CELL[0] * (1 - part // 2), CELL[1] * (1 - part % 2)
        block = kernel[..., channels * part : channels * (part + 1)]
        whole[:, :, top : top + CELL[0], left : left + CELL[1]] = block.transpose(3, 0, 1, 2)
    return whole


def inputs_in_words(agent: Agent) -> str:
    """Return what the inputs and outputs of the model are: its documentation, and that of ``docs/python.md``."""
    config = agent.config
    actions = ("up, down, no-op", "up, down")[config.num_actions == 2]
    if config.algorithm == "reinforce":
        return (
            "changes (n, 6400): the newest image minus the one before, 80 rows of 80 pixels, of 0 and 1 each: rows "
            f"35, 37 ... 193 and columns 0, 2 ... 158 of the screen, 0 where it shows the background; 0 in the first "
            f"step of a game. logits and probabilities (n, {config.num_actions}): of {actions}."
        )
    return (
        f"images (n, {config.frame_stack}, {COURT[0]}, {COURT[1]}): the newest first, of 0 and 1: rows {COURT_TOP} ... "
        f"{COURT_TOP + COURT[0] - 1} and columns 0, 2 ... 158 of the screen, 0 where it shows the background; 0 before "
        f"a game began. side (n, 16): 1 at index 0; for each of the {config.action_history} actions before, the newest "
        f"first (k = 0, 1 ...), 1 at index 1 + {config.num_actions} k + action ({actions}: 0, 1, 2), or nothing before "
        f"a game began; 0 elsewhere. logits and probabilities (n, {config.num_actions}): of {actions}; value (n, 1): "
        "the discounted points that are expected."
    )


def _onnx(agent: Agent) -> bytes:
    """Return a model of opset 17 that computes what `fastpong.dense` does, with `inputs_in_words` as its doc_string."""
    from onnx import TensorProto, checker, helper, numpy_helper

    config, w = agent.config, agent.weights
    nodes: list[Any] = []
    inputs: dict[str, tuple[int, ...]]
    constants: Arrays = {}

    def add(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    if config.algorithm == "reinforce":
        inputs = {"changes": (len(w["w1"]),)}
        constants |= {"w1": w["w1"], "w2": np.vstack([w["w2"], np.zeros_like(w["w2"][:1])]).T}
        hidden = add("Relu", [add("MatMul", ["changes", "w1"], "sums")], "hidden")
        add("MatMul", [hidden, "w2"], "logits")
    else:
        inputs = {"images": (config.frame_stack, *COURT), "side": (16,)}
        kernel = whole_kernel(w["kernel"])
        shape = {"strides": CELL, "pads": CELL * 2, "kernel_shape": kernel.shape[2:]}
        constants |= {
            "kernel": kernel, "bias": w["bias"], "w1": w["w1"], "w2": w["w2"][:, :-1].T, "w2_bias": w["w2"][:, -1],
            "zero": np.zeros(1, np.float32), "flat": np.array([-1, GRID[0] * GRID[1] * len(kernel)], np.int64),
            "sizes": np.array([config.num_actions, 1], np.int64),
        }  # fmt: skip
        channels = add("Relu", [add("Conv", ["images", "kernel", "bias"], "convolved", **shape)], "all_channels")
        anything = add("ReduceMax", ["images"], "anything", axes=[1], keepdims=1)
        seen = add("Cast", [add("Greater", [add("MaxPool", [anything], "pooled", **shape), "zero"], "is_seen")], "seen",
                   to=TensorProto.FLOAT)  # fmt: skip
        ordered = add("Transpose", [add("Mul", [channels, seen], "channels")], "ordered", perm=[0, 2, 3, 1])
        both = add("Concat", [add("Reshape", [ordered, "flat"], "flattened"), "side"], "inputs", axis=1)
        hidden = add("Relu", [add("MatMul", [both, "w1"], "sums")], "hidden")
        outputs = add("Add", [add("MatMul", [hidden, "w2"], "products"), "w2_bias"], "outputs")
        nodes.append(helper.make_node("Split", [outputs, "sizes"], ["logits", "value"], axis=1))
    add("Softmax", ["logits"], "probabilities", axis=1)
    sizes = {"logits": config.num_actions, "probabilities": config.num_actions}
    sizes |= {} if config.algorithm == "reinforce" else {"value": 1}

    def tensor(name: str, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", *shape])

    graph = helper.make_graph(
        nodes, "fastpong", [tensor(name, *shape) for name, shape in inputs.items()],
        [tensor(name, size) for name, size in sizes.items()],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()],
        doc_string=inputs_in_words(agent),
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, doc_string=graph.doc_string
    )
    helper.set_model_props(model, {"config": _about(agent)})
    checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data
