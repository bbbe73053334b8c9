"""A recorded game in JavaScript: its screens are those that were played, and the network says what the kernels said."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

import fastpong
from fastpong.agent import Agent
from fastpong.commands.page import differences, halves, network, of_the_page
from fastpong.commands.play import Match, Step
from fastpong.config import make_config
from fastpong.policy import make_policy
from tests.support.v8 import V8, v8

STEPS = 250

TELL = """
  const told = [], courts = [], kinds = [];
  for (let k = 0; k < actions.length; k++) {
    const last = actions.slice(Math.max(0, k - net.history), k).reverse();
    courts.unshift(courtOf(screens.seek(k)));
    kinds.unshift(kindsOf(screens.seek(k), courts[0]));
    net.forward(courts, last);
    const shares = net.reasons([0, 1, 2].map((kind) => kinds.slice(0, net.frames).flatMap((one) => one[kind])), last);
    told.push([net.value, Math.log(net.probabilities[actions[k]]), net.logits[0] - net.logits[1], ...shares]);
  }
  JSON.stringify(told);
"""
"""Of each step: value, log of the probability of the action, logit(up) − logit(down), and the shares of that."""


def played(agent: Agent) -> list[Step]:
    return list(Match(agent, 1).play(STEPS))


def put(context: V8, name: str, data: bytes) -> None:
    context.eval(f"var {name} = new Uint8Array({len(data)})")
    context.bytes_of(name)[:] = np.frombuffer(data, np.uint8)


def opened(context: V8, agent: Agent, game: list[Step]) -> None:
    put(context, "weights", halves(agent.weights))
    put(context, "runs", differences(np.array([step.screen for step in game])))
    context.eval(f"var actions = {[step.action for step in game]}")
    context.eval(f"var net = new Net(weights, {json.dumps(network(agent.config))})")
    context.eval("var screens = new Screens(runs, actions.length)")


@pytest.fixture(scope="module")
def agent() -> Agent:
    return of_the_page(fastpong.load())


@pytest.fixture(scope="module")
def game(agent: Agent) -> list[Step]:
    return played(agent)


@pytest.fixture(scope="module")
def context(agent: Agent, game: list[Step]) -> Iterator[V8]:
    with v8("net.js", "game.js") as context:
        opened(context, agent, game)
        yield context


def test_the_screens_forwards_and_backwards(context: V8, game: list[Step]) -> None:
    assert len({step.screen.tobytes() for step in game}) > STEPS / 2
    for k in [*range(STEPS), *range(STEPS - 1, -1, -1), STEPS // 2]:
        screen = context.bytes_of(f"screens.seek({k})").reshape(210, 160)
        np.testing.assert_array_equal(screen, game[k].screen, err_msg=str(k))


def kernels_say(game: list[Step]) -> list[tuple[float, float]]:
    return [(step.value, step.log_prob) for step in game]


def test_the_network_says_what_the_kernels_say(context: V8, game: list[Step]) -> None:
    assert any(step.reward for step in game)
    told = np.array(json.loads(context.eval(f"{{{TELL}}}")))
    np.testing.assert_allclose(told[:, :2], kernels_say(game), rtol=0, atol=1e-4)
    np.testing.assert_allclose(told[:, 3:].sum(1), told[:, 2], rtol=0, atol=1e-4)
    assert (np.abs(told[:, 3:]).max(0) > 0.1).all(), "ball, own paddle, other paddle and habit all count"


def test_another_weight_is_another_network(context: V8, game: list[Step]) -> None:
    context.eval("net.bias[3] += 0.01")
    told = np.array(json.loads(context.eval(f"{{{TELL}}}")))
    context.eval("net.bias[3] -= 0.01")
    assert np.abs(told[:, :2] - kernels_say(game)).max() > 1e-3


@pytest.mark.parametrize("changes", [{"num_actions": 2, "action_history": 0}, {"frame_stack": 1, "action_history": 5}])
def test_networks_of_other_shapes(changes: dict[str, int]) -> None:
    config = make_config("fast", changes)
    agent = of_the_page(Agent(config, make_policy(config).weights.arrays))
    game = played(agent)[:60]
    with v8("net.js", "game.js") as context:
        opened(context, agent, game)
        told = np.array(json.loads(context.eval(f"{{{TELL}}}")))
    np.testing.assert_allclose(told[:, :2], kernels_say(game), rtol=0, atol=1e-4)
    np.testing.assert_allclose(told[:, 3:].sum(1), told[:, 2], rtol=0, atol=1e-4)
