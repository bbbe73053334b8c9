from pathlib import Path

import pytest

from fastpong.config import (
    PRESETS,
    Config,
    changed,
    check,
    make_config,
    parse_assignments,
    read_toml,
    settings,
    to_toml,
)
from fastpong.errors import UsageError


def test_toml_comes_back_the_same(tmp_path: Path) -> None:
    config = make_config("ray", {"envs": 7, "gamma": 0.5, "learning_rate": 1e-7, "target": -3})
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config, {"command": 'train "x" \\ y', "cores": 2, "fine": True}))
    changes, about = read_toml(path)
    assert make_config(str(changes.pop("preset")), changes) == config
    assert about == {"command": 'train "x" \\ y', "cores": 2, "fine": True}


def test_every_setting_explains_itself_and_accepts_its_default() -> None:
    for name, setting in settings().items():
        assert len(setting.metadata["help"]) > 10
        assert check(name, setting.default) == setting.default


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(preset: str) -> None:
    config = make_config(preset)
    assert config.preset == preset
    assert all(getattr(config, name) == value for name, value in PRESETS[preset].items())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("envs", 0, "envs must be 1"),
        ("envs", "many", "an integer"),
        ("envs", 1.5, "an integer"),
        ("envs", True, "an integer"),
        ("gamma", 1.1, "0 … 1"),
        ("gamma", "nan", "0 … 1"),
        ("carry", "set", "point, game"),
        ("preset", "best", "karpathy"),
        ("speed", 1, "no setting 'speed'"),
        ("hidden", 20, "multiple of 16"),
        ("window_seconds", 2.0, "--preset ppg"),
    ],
)
def test_impossible_values_get_one_line(name: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        changed(Config(), {name: value})
    assert "\n" not in str(error.value)


def test_assignments() -> None:
    assert parse_assignments(["gamma = 0.5", "carry=game", "envs=3"]) == {"gamma": 0.5, "carry": "game", "envs": 3}
    with pytest.raises(UsageError, match="key=value"):
        parse_assignments(["gamma"])


@pytest.mark.parametrize(
    ("text", "words"), [("envs = ", "not a TOML file"), ("envs = 0", "envs must be"), (None, "read")]
)
def test_bad_files(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "c.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_toml(path)


@pytest.mark.parametrize(("envs", "steps"), [(64, 128), (8, 1024), (256, 32), (7, 1170), (4096, 16)])
def test_a_batch_is_as_large_with_any_number_of_games_until_they_are_too_many(envs: int, steps: int) -> None:
    assert make_config("fast", {"envs": envs}).rollout_steps == steps
