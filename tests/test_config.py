import dataclasses
import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpong import __version__
from fastpong.config import GROUPS, PRESETS, Config, changed, check, make_config, settings
from fastpong.config_sources import from_environment, parse_assignments, read_toml, to_toml
from fastpong.errors import UsageError


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("preset", PRESETS)
def test_toml_comes_back_the_same(preset: str, tmp_path: Path) -> None:
    config = make_config(preset, {"num_envs": 7, "gamma": 0.5, "learning_rate": 1e-7, "target_score": -3})
    about = {"command": 'train "x" \\ y', "cores": 2, "fine": True}
    changes, read = read_toml(written(tmp_path / "config.toml", to_toml(config, about)))
    assert make_config(str(changes.pop("preset")), changes) == config
    assert read == about


@given(command=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_the_same(command: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = written(tmp_path_factory.mktemp("toml") / "config.toml", to_toml(Config(), {"command": command}))
    assert read_toml(path)[1] == {"command": command}


def test_every_control_character_comes_back_the_same(tmp_path: Path) -> None:
    text = "".join(map(chr, [*range(32), 127, *range(128, 160), 0x2028])) + '"\\'
    assert "\x7f" in text
    assert read_toml(written(tmp_path / "c.toml", to_toml(Config(), {"command": text})))[1] == {"command": text}


@pytest.mark.parametrize("preset", PRESETS)
def test_each_group_is_a_table_of_what_the_algorithm_uses(preset: str) -> None:
    config = make_config(preset)
    tables = tomllib.loads(to_toml(config, {"cores": 2}))
    other = {"ppo": {"reinforce"}, "reinforce": {"ppo", "late", "starts"}}[config.algorithm]
    assert list(tables) == [group for group in GROUPS if group not in other] + ["about"]
    assert tables.pop("about") == {"cores": 2}
    for group, table in tables.items():
        for name, value in table.items():
            assert settings()[name].metadata["group"] == group and value == getattr(config, name)
    assert {name for table in tables.values() for name in table} == set(settings(config.algorithm))


def test_every_setting_explains_itself_and_accepts_its_default() -> None:
    assert len(settings()) <= 45  # a setting is what a preset, a test or a page changes
    for name, setting in settings().items():
        assert 10 < len(setting.metadata["help"]) <= 110
        assert setting.metadata["group"] in GROUPS
        assert check(name, setting.default) == setting.default
    assert {setting.metadata["group"] for setting in settings().values()} == set(GROUPS)
    only = {of: set(settings(of)) for of in ("ppo", "reinforce")}
    assert only["ppo"] | only["reinforce"] == set(settings())
    assert only["reinforce"] - only["ppo"] == {"batch_games", "batch_unit", "window_seconds", "running_reward_decay"}


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(preset: str) -> None:
    config = make_config(preset)
    changes = dataclasses.asdict(config)  # as a checkpoint has them
    assert make_config(changes.pop("preset"), changes) == config
    assert config.preset == preset
    assert all(getattr(config, name) == value for name, value in PRESETS[preset].items())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_envs", 0, "num_envs must be 1"),
        ("num_envs", "many", "an integer"),
        ("num_envs", 1.5, "an integer"),
        ("num_envs", float("inf"), "an integer"),
        ("num_envs", True, "an integer"),
        ("gamma", 1.1, "0 … 1"),
        ("gamma", "nan", "0 … 1"),
        ("batch_unit", "set", "point, game"),
        ("preset", "best", "the presets are fast, karpathy, ray, ppg"),
        ("preset", "karpaty", "there is no preset 'karpaty': did you mean 'karpathy'?"),
        ("preset", "ppo", "there is no preset 'ppo': did you mean 'ppg'?"),
        ("speed", 1, "there is no setting 'speed'"),
        ("hiden_units", 1, "there is no setting 'hiden_units': did you mean 'hidden_units'?"),
        ("minibatch", 1, "there is no setting 'minibatch': did you mean 'minibatch_size'?"),
        ("hidden_units", 20, "multiple of 64, not 20"),
        ("window_seconds", 2.0, "window_seconds is a setting of reinforce"),
        ("batch_games", 3, "batch_games is a setting of reinforce"),
    ],
)
def test_impossible_values_get_one_line(name: str, value: object, words: str) -> None:
    with pytest.raises(UsageError) as error:
        changed(Config(), {name: value})
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["clip_high", "late_by_step", "exploring_start_steps", "frame_stack"])
def test_settings_of_the_other_algorithm_are_refused_unless_they_are_as_always(name: str) -> None:
    default = getattr(Config(), name)
    with pytest.raises(UsageError, match=f"{name} is a setting of ppo: it changes nothing here"):
        make_config("karpathy", {name: default + 1})
    assert make_config("karpathy", {name: default}) == make_config("karpathy")
    assert getattr(make_config("fast", {name: default + 1}), name) == default + 1


def test_assignments() -> None:
    assert parse_assignments(["gamma = 0.5", "batch_unit=game", "num_envs=3"]) == {
        "gamma": 0.5,
        "batch_unit": "game",
        "num_envs": 3,
    }
    with pytest.raises(UsageError, match="key=value"):
        parse_assignments(["gamma"])


def test_variables_of_other_programs_are_noted_and_misspelt_settings_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setenv("FASTPONG_GAMMA", "0.5")
    assert from_environment(notes.append) == {"gamma": 0.5} and not notes
    for name in ("PORT", "SERVICE_HOST", "PORT_80_TCP_ADDR", "HOME", "DEBUG"):  # Kubernetes, and whoever
        monkeypatch.setenv(f"FASTPONG_{name}", "tcp://10.0.0.1:80")
    assert from_environment(notes.append) == {"gamma": 0.5}
    assert notes == ["FASTPONG_PORT and 4 more in the environment: no setting of fastpong has that name"]
    for name, meant in (("GAMA", "gamma"), ("LR", "learning_rate"), ("ENVS", "num_envs")):
        with monkeypatch.context() as context:
            context.setenv(f"FASTPONG_{name}", "1")
            with pytest.raises(UsageError, match=f"FASTPONG_{name} in the environment: .*did you mean '{meant}'"):
                from_environment()


def test_a_file_may_leave_the_groups_out(tmp_path: Path) -> None:
    text = "gamma = 0.5\n[env]\nnum_envs = 3\n[late]\nlogit_growth = 0\n"
    assert read_toml(written(tmp_path / "c.toml", text)) == ({"gamma": 0.5, "num_envs": 3, "logit_growth": 0}, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num_envs = ", "not a TOML file"),
        ("num_envs = 0", "num_envs must be"),
        ("[env]\nnum_envs = 0", "num_envs must be"),
        ("[env]\nnum_env = 1", "there is no setting 'num_env': did you mean 'num_envs'?"),
        ("[netwrok]\nhidden_units = 64", "there is no group 'netwrok': did you mean 'network'?"),
        ("[physics]\ngravity = 1", "there is no group 'physics': the groups are run, env,"),
        ("\xff", "not a TOML file"),
        ("about = 5", "about is a table in a settings file, not 5"),
        ("# " + (1 << 20) * "x", "larger than 1,048,576 bytes"),
        (None, "cannot read"),
    ],
)
def test_bad_files(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "c.toml"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as error:
        read_toml(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_files_of_other_systems_and_pipes_are_read(tmp_path: Path) -> None:
    """As Notepad saves it, and ``--config <(…)``."""
    (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbfgamma = 0.5\r\n")
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cp", tmp_path / "c.toml", tmp_path / "pipe"]):
        assert read_toml(tmp_path / "c.toml") == read_toml(tmp_path / "pipe") == ({"gamma": 0.5}, {})
    with pytest.raises(UsageError, match="not a regular file"):
        read_toml(tmp_path / "pipe", note=print)  # of a run


def test_a_file_of_another_version_names_the_one_that_reads_it(tmp_path: Path) -> None:
    """As 0.1 wrote it: its settings have other names, which are not complained about one by one."""
    text = 'preset = "fast"\nenvs = 64\nsticky = 0.25\npractice_points = 0.5\n\n[about]\nfastpong = "0.1.0"\n'
    path = written(tmp_path / "config.toml", text)
    with pytest.raises(UsageError) as error:
        read_toml(path)
    assert str(error.value) == f"{path} is of fastpong 0.1.0, which reads it; this is fastpong {__version__}"
    for version in (__version__, __version__.rpartition(".")[0] + ".77"):
        path.write_text(f'gamma = 0.5\n[about]\nfastpong = "{version}"\n')
        assert read_toml(path)[0] == {"gamma": 0.5}


@pytest.mark.parametrize(("envs", "steps"), [(64, 256), (8, 2048), (128, 128), (7, 2341), (4096, 16)])
def test_a_batch_is_as_large_with_any_number_of_envs_until_they_are_too_many(envs: int, steps: int) -> None:
    assert make_config("fast", {"num_envs": envs}).rollout_steps == steps
