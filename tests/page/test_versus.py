"""The match in JavaScript: what the page plays is what fastpong plays."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

import fastpong
from fastpong.commands.page import halves, network
from fastpong.commands.versus import rules
from fastpong.console import cartridge, controls, plain
from fastpong.console.controls import FIRE, LEFTFIRE, NOOP, PADDLE_STEP, RIGHTFIRE
from fastpong.pong import WINNING
from tests.console.pair import console
from tests.support.v8 import V8, v8

LEFT, RIGHT, BALL_ROW = 13, 14, 54
"""Where in RAM are the points, and the ball's row: 0 while it is out."""

PADDLE_COLOUR = 56

TOLD = "JSON.stringify([match.actions[0], match.held, match.state.paddle[1], net.value, ...net.probabilities])"


@pytest.fixture(scope="module")
def agent() -> fastpong.Agent:
    return fastpong.load(actions=3)


@pytest.fixture(scope="module")
def opened(agent: fastpong.Agent) -> Iterator[V8]:
    rom, weights = cartridge.read().tolist(), halves(agent.weights)
    with v8("core.js", "net.js", "versus.js") as context:
        context.eval(f"let match; const rom = Uint8Array.from({rom}), weights = new Uint8Array({len(weights)})")
        context.bytes_of("weights")[:] = np.frombuffer(weights, np.uint8)
        context.eval(f"const net = new Net(weights, {json.dumps(network(agent.config))})")
        yield context


@pytest.fixture
def page(opened: V8, agent: fastpong.Agent) -> V8:
    """A match that begins."""
    opened.eval(f"match = new Match(rom, net, {json.dumps(rules(agent))})")
    return opened


def test_the_match_is_that_of_console_and_agent(page: V8, agent: fastpong.Agent) -> None:
    """A person turns the paddle at random. The plain core repeats what both did; the agent has to choose the same."""
    rng, rom, (s, screen) = np.random.default_rng(1), cartridge.read(), console()
    controls.boot(plain.frame, s, rom, screen, mode=2)
    shown, held, chosen = page.bytes_of("match.screen").reshape(210, 160), NOOP, set()
    for number in range(320):
        np.testing.assert_array_equal(shown, screen)
        if number % 4 == 0:
            expected = [agent.value(screen), *agent.probabilities(screen)]
            action = agent.act(screen)
        if number % 20 == 0:
            aim = page.eval(f"ohmsAt({rng.integers(len(screen))})")
        is_out, before = s.ram[BALL_ROW] == 0, int(s.paddle[1])
        page.eval(f"match.play({aim}, FASTEST)")
        told = page.eval(TOLD)
        its_action, its_held, paddle, *outputs = json.loads(told)
        assert its_action == action and its_held in (action, held) and abs(paddle - before) <= PADDLE_STEP
        np.testing.assert_allclose(outputs, expected, atol=1e-4)
        held, s.paddle[1] = its_held, paddle
        agents, persons = ((RIGHTFIRE, LEFTFIRE, FIRE)[held], FIRE) if is_out else (held, NOOP)
        controls.set_controls(s, agents, persons, 0, 0, 0)
        plain.frame(s, rom, screen)
        chosen.add(held)
    assert len(chosen) == 3 and s.ram[RIGHT] >= 2  # so it was served twice


def test_the_paddle_goes_where_the_pointer_is(page: V8) -> None:
    screen = page.bytes_of("match.screen").reshape(210, 160)
    for row in (60, 150, 80):
        page.eval(f"for (let k = 0; k < 40; k++) match.play(ohmsAt({row}), BY_KEYS)")
        drawn = np.flatnonzero(screen[34:194, 17] == PADDLE_COLOUR) + 34
        assert abs(drawn.mean() - row) <= 1.5 and len(drawn) in (15, 16)


def test_a_match_ends_and_begins_anew(page: V8) -> None:
    """The person does nothing."""
    page.bytes_of("match.state.ram")[[LEFT, RIGHT]] = 19, WINNING - 1
    page.eval("for (let k = 0; k < 3000 && !match.isOver; k++) match.play(core.PADDLE_HIGH, FASTEST)")
    assert page.eval("match.isOver") and json.loads(page.eval("JSON.stringify(match.points)")) == [19, WINNING]
    page.eval("match.begin()")
    assert not page.eval("match.isOver") and page.eval("match.courts.length + match.frames") == 0


def test_it_samples_if_it_is_asked_to(page: V8) -> None:
    page.eval("match.sample = true")
    page.eval("match.net = { frames: 3, history: 3, actions: 3, forward: () => [0.5, 0.3, 0.2] }")
    page.eval("const counts = [0, 0, 0]; for (let k = 0; k < 2000; k++) { match.think(); counts[match.actions[0]]++; }")
    np.testing.assert_allclose(json.loads(page.eval("JSON.stringify(counts)")), (1000, 600, 400), atol=120)
