import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastpong import dense
from fastpong.agent import Agent, load
from fastpong.commands.page import _advantages, _inputs, of_the_page
from fastpong.commands.play import Match, play, run
from fastpong.config import make_config
from fastpong.console import cartridge
from fastpong.errors import FastpongError, UsageError
from fastpong.policy import make_policy
from fastpong.runs.facts import Facts
from fastpong.runs.folder import RunFolder
from tests import naive
from tests.support.faults import full_disk
from tests.support.runs import line

CONFIG = make_config("fast", {"seed": 3, "gamma": 0.98})
HOSTILE = "<script>alert(1)<!--"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of a hostile name: with early weights, the best ones, and two lines of metrics."""
    run, weights = RunFolder(tmp_path / HOSTILE), make_policy(CONFIG).weights.arrays
    run.create(CONFIG, {})
    for steps in (0, 24_576):
        run.history.add(weights, Facts(CONFIG, steps))
    run.save_best({f"policy.{name}": array for name, array in weights.items()}, Facts(CONFIG, 40_000))
    for steps in (10_000, 20_000):
        run.log(line(steps))
    return run.path


def about(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.partition('id="about">')[2].partition("</script>")[0])
    return found


def blobs(text: str) -> dict[str, bytes]:
    return {
        name: zlib.decompress(base64.b64decode(data))
        for name, data in re.findall(r'<script type="text/plain" id="(\w+)">([^<]*)</script>', text)
    }


def test_a_page_holds_a_whole_game_and_nothing_of_this_machine(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "game.HTML"
    run(load(folder), 0, out, False, None, 1.0, False, checkpoint=folder)
    assert "sampled actions" in capsys.readouterr().out
    text, data = out.read_text(), blobs(out.read_text())
    assert len(text) < 1_500_000
    code = re.sub('id="[a-z]+">[^<]*<', "", text)
    assert not [part for part in ("http:", "https:", "src=", "import", "__", str(tmp_path)) if part in code]
    assert "Run &lt;script&gt;alert(1)&lt;!-- plays Pong" in text and HOSTILE not in text
    # Of any 64 bytes of the cartridge 32 would be one of these.
    rom = [cartridge.read().tobytes()[at : at + 32] for at in range(0, 2048, 32)]
    told = [part for part in rom if len(set(part)) > 4]
    assert len(told) > 50 and not [part for part in told for one in (text.encode(), *data.values()) if part in one]

    facts = about(text)
    assert max(sum(reward == sign for _, reward in facts["points"]) for sign in (1, -1)) == 21
    assert len(data["actions"]) == len(data["values"]) // 4 == facts["points"][-1][0] + 1
    assert facts["curve"] == [[10_000, 0.1], [20_000, 0.1]] and "over 20 k steps in 0.3 minutes" in text
    assert facts["seconds"] == pytest.approx(4 / 60) and "γ = 0.98" in text
    assert [name for name, _ in facts["carpet"]["rows"]] == ["0", "25 k", "40 k"]
    begin, end = facts["carpet"]["from"], facts["carpet"]["to"]
    assert facts["rally"][0] <= begin < end == facts["rally"][1]
    assert all(len(row) == end - begin and max(map(abs, row)) <= 100 for _, row in facts["carpet"]["rows"])


def test_what_is_drawn_is_what_was_played() -> None:
    agent = of_the_page(load())
    game = list(Match(agent).play(200))
    some, parts = game[1:], [dense.outputs(agent.weights, *inputs) for inputs in _inputs(agent, game, 1, 200)]
    logits, values = (np.concatenate(one) for one in zip(*parts, strict=True))
    np.testing.assert_allclose(values, [step.value for step in some], atol=1e-4)
    chances = dense.softmax(logits)[range(len(some)), [step.action for step in some]]
    np.testing.assert_allclose(np.log(chances), [step.log_prob for step in some], atol=1e-4)

    values = np.array([step.value for step in game], np.float32)
    rewards = np.array([[step.reward] for step in game])
    c, after = agent.config, np.append(values, values[-1])[:, None]
    expected, _ = naive.advantages_of(rewards, np.zeros_like(rewards), after, c.gamma, c.gae_lambda)
    found = _advantages(agent.config, game, values)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_damaged_parts_of_a_run_are_left_out(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "metrics.jsonl").write_text("nonsense\n\n")
    (folder / "history" / "step_000000024576.npz").write_bytes(b"half a file")
    play(load(folder), tmp_path / "game.html", max_steps=5, checkpoint=folder)
    told = capsys.readouterr().err
    assert "the page has no curve" in told and "step_000000024576.npz is damaged" in told
    facts = about((tmp_path / "game.html").read_text())
    assert facts["curve"] is None and [name for name, _ in facts["carpet"]["rows"]] == ["0", "40 k"]


def test_what_has_no_page(tmp_path: Path) -> None:
    out = tmp_path / "game.html"
    for preset in ("karpathy", "ray", "ppg"):
        config = make_config(preset, {"hidden_units": 8})
        agent = Agent(config, make_policy(config).weights.arrays)
        with pytest.raises(UsageError, match=f"the network of preset fast, and an agent is of {preset}"):
            play(agent, out)
    weights = make_policy(CONFIG).weights.arrays
    with pytest.raises(UsageError, match="up to 65504"):
        play(Agent(CONFIG, {**weights, "bias": np.full(16, 1e6, np.float32)}), out)
    assert not out.exists()
    out.write_text("of before")
    with full_disk(tmp_path, left=10_000), pytest.raises(FastpongError, match="cannot write .*No space left"):
        play(Agent(CONFIG, weights), out, max_steps=5)
    assert out.read_text() == "of before" and [*tmp_path.glob("*.tmp")] == []
