"""Settings: what exists, which layer is stronger, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch import config
from monarch.config import (
    Encoding,
    clear_runtime_config,
    configure,
    configured,
    get_global_config,
    get_runtime_config,
    parametrize_config,
    parametrize_config_pointwise,
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    for name in list(os.environ):
        if name.startswith(("MONARCH_", "HYPERACTOR_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    clear_runtime_config()
    yield tmp_path
    clear_runtime_config()


def test_every_default_is_a_valid_value():
    found = get_global_config()
    assert set(found) == set(config.SETTINGS)
    configure(**found)
    assert get_global_config() == found


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("30s", "30s"),
        ("300s", "5m"),
        ("90s", "1m 30s"),
        ("1h30m", "1h 30m"),
        ("1h 30m", "1h 30m"),
        ("500ms", "500ms"),
        ("0.5s", "500ms"),
        ("2min", "2m"),
        ("1d", "1d"),
        ("0s", "0s"),
    ],
)
def test_durations_are_kept_in_one_form(given: str, kept: str):
    with configured(stop_actor_timeout=given) as found:
        assert found["stop_actor_timeout"] == kept
    assert get_global_config()["stop_actor_timeout"] == "10s"


@given(st.integers(0, 10**18))
def test_any_duration_survives_its_text(nanoseconds: int):
    assert config._nanoseconds(config._duration(nanoseconds)) == nanoseconds


@pytest.mark.parametrize("text", ["invalid", "30", "abc123", "", "s", "1h x", "1..5s", "-3s"])
def test_what_is_no_duration_is_refused(text: str):
    with pytest.raises(TypeError, match=r"Invalid duration format: stop_actor_timeout is a dur"):
        configure(stop_actor_timeout=text)


def test_the_runtime_reads_durations_in_seconds():
    configure(stop_actor_timeout="1500ms")
    assert config.value("stop_actor_timeout") == 1.5
    assert config.value("heartbeat_misses") == 4
    assert config.value("stop_actor_timeout", option="2s") == 2.0


def test_an_unknown_setting_is_refused_and_nothing_is_set():
    with pytest.raises(ValueError, match="stop_timeout is no setting; did you mean"):
        configure(cleanup_timeout="1s", stop_timeout="3s")
    assert get_runtime_config() == {}
    with pytest.raises(ValueError, match=r"docs/configuration\.md"):
        configure(zzz=1)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("stop_actor_timeout", 30, TypeError),
        ("heartbeat_misses", 1.5, TypeError),
        ("heartbeat_misses", True, TypeError),
        ("heartbeat_misses", -1, ValueError),
        ("enable_log_forwarding", 1, TypeError),
        ("message_latency_sampling_rate", 1.5, ValueError),
        ("message_latency_sampling_rate", "half", TypeError),
        ("secret_file", 3, TypeError),
        ("default_encoding", "bincode", TypeError),
        ("default_transport", 42, TypeError),
        ("default_transport", "invalid://scheme", ValueError),
        ("remote_alloc_allowed_port_range", [1, 2], TypeError),
    ],
)
def test_values_that_do_not_fit_are_refused(name: str, value: object, error: type[Exception]):
    with pytest.raises(error, match=name):
        configure(**{name: value})


def test_settings_of_monarch_without_effect_are_kept():
    with configured(
        default_encoding=Encoding.Json,
        remote_alloc_allowed_port_range=slice(8000, 9000),
        rdma_max_nics_per_buffer=None,
        message_latency_sampling_rate=1,
        default_transport="tcp://127.0.0.1:8080",
    ) as found:
        assert found["default_encoding"] is Encoding.Json
        assert found["remote_alloc_allowed_port_range"] == slice(8000, 9000)
        assert found["message_latency_sampling_rate"] == 1.0
        assert found["default_transport"] == "tcp://127.0.0.1:8080"


def test_blocks_nest_and_restore():
    configure(tail_log_lines=1)
    with configured(enable_log_forwarding=True), configured(tail_log_lines=9) as inner:
        assert (inner["enable_log_forwarding"], inner["tail_log_lines"]) == (True, 9)
    assert get_runtime_config() == {"tail_log_lines": 1}
    with pytest.raises(RuntimeError, match="boom"), configured(tail_log_lines=2):
        raise RuntimeError("boom")
    assert get_runtime_config() == {"tail_log_lines": 1}


def test_the_environment_is_stronger_than_configure(monkeypatch: pytest.MonkeyPatch):
    configure(stop_actor_timeout="2s", prefix_with_rank=True)
    monkeypatch.setenv("MONARCH_STOP_ACTOR_TIMEOUT", "3s")
    monkeypatch.setenv("HYPERACTOR_PREFIX_WITH_RANK", "no")
    found = get_global_config()
    assert (found["stop_actor_timeout"], found["prefix_with_rank"]) == ("3s", False)
    assert config.value("stop_actor_timeout", option="4s") == 4.0
    assert get_runtime_config() == {"stop_actor_timeout": "2s", "prefix_with_rank": True}


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("HEARTBEAT_MISSES", "7", 7),
        ("ENABLE_LOG_FORWARDING", "on", True),
        ("MESSAGE_LATENCY_SAMPLING_RATE", "0.5", 0.5),
        ("REMOTE_ALLOC_ALLOWED_PORT_RANGE", "8000..9000", slice(8000, 9000)),
        ("DEFAULT_ENCODING", "json", Encoding.Json),
        ("SECRET_FILE", "/a/b", "/a/b"),
    ],
)
def test_variables_hold_every_kind_of_value(monkeypatch, variable, text, value):
    monkeypatch.setenv(f"MONARCH_{variable}", text)
    assert get_global_config()[variable.lower()] == value


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("HEARTBEAT_MISSES", "many"),
        ("ENABLE_LOG_FORWARDING", "perhaps"),
        ("REMOTE_ALLOC_ALLOWED_PORT_RANGE", "8000"),
        ("DEFAULT_ENCODING", "xml"),
        ("DEFAULT_TRANSPORT", "pigeon"),
        ("STOP_ACTOR_TIMEOUT", "soon"),
    ],
)
def test_a_bad_variable_is_named(monkeypatch, variable, text):
    monkeypatch.setenv(f"MONARCH_{variable}", text)
    with pytest.raises((TypeError, ValueError), match=f"MONARCH_{variable}.*{text!r}"):
        get_global_config()


@pytest.mark.parametrize(("name", "value"), [("heartbeat_interval", "0s"), ("heartbeat_misses", 0)])
def test_a_value_below_the_least_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is at least"):
        configure(**{name: value})


def test_the_file_is_weaker_than_configure_and_stronger_than_the_default(bare: Path):
    (bare / "monarch.toml").write_text('cleanup_timeout = "9s"\nstop_actor_timeout = "8s"\n')
    configure(stop_actor_timeout="7s")
    found = get_global_config()
    assert (found["cleanup_timeout"], found["stop_actor_timeout"]) == ("9s", "7s")


def test_the_file_may_be_named(bare: Path, monkeypatch: pytest.MonkeyPatch):
    named = bare / "cluster.toml"
    monkeypatch.setenv("MONARCH_CONFIG", str(named))
    with pytest.raises(ValueError, match=r"MONARCH_CONFIG names .*cluster\.toml, which does not"):
        get_global_config()
    named.write_text('remote_alloc_allowed_port_range = "1..5"\n')
    assert get_global_config()["remote_alloc_allowed_port_range"] == slice(1, 5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stop_timeout = 3", r"monarch\.toml: stop_timeout is no setting"),
        ("heartbeat_misses = true", r"monarch\.toml: heartbeat_misses is an integer"),
        ("= 3", r"monarch\.toml cannot be read as TOML"),
    ],
)
def test_a_bad_file_is_named(bare: Path, text: str, says: str):
    (bare / "monarch.toml").write_text(text)
    with pytest.raises((TypeError, ValueError), match=says):
        get_global_config()


def test_a_child_gets_what_its_parent_was_configured_with(monkeypatch: pytest.MonkeyPatch):
    assert config.inherited() == {}
    configure(
        cleanup_timeout="9s",
        default_encoding=Encoding.Json,
        remote_alloc_allowed_port_range=slice(1, 5),
    )
    told = config.inherited()
    clear_runtime_config()
    for name, text in told.items():
        monkeypatch.setenv(name, text)
    found = get_global_config()
    assert found["cleanup_timeout"] == "9s"
    assert found["default_encoding"] is Encoding.Json
    assert found["remote_alloc_allowed_port_range"] == slice(1, 5)
    configure(cleanup_timeout="1s")
    assert get_global_config()["cleanup_timeout"] == "1s"
    assert '"cleanup_timeout": "1s"' in config.inherited()[config.INHERITED]


seen: list[tuple[str, int, bool]] = []


@parametrize_config(tail_log_lines={3}, force_file_log={True, False})
def test_a_test_runs_under_each_combination(bare: Path):
    found = get_global_config()
    assert bare.is_dir()
    seen.append(("each", found["tail_log_lines"], found["force_file_log"]))


@parametrize_config_pointwise(tail_log_lines=[1, 2], force_file_log=[True, False])
def test_a_test_runs_once_for_each_place():
    found = get_global_config()
    seen.append(("place", found["tail_log_lines"], found["force_file_log"]))


def test_the_two_helpers_ran_what_they_should():
    if not seen:
        pytest.skip("the two tests above ran in another process")
    assert sorted(seen) == [
        ("each", 3, False),
        ("each", 3, True),
        ("place", 1, True),
        ("place", 2, False),
    ]


def test_the_helpers_refuse_nothing_and_unequal_lengths():
    with pytest.raises(ValueError, match="needs at least one setting"):
        parametrize_config()(print)
    with pytest.raises(ValueError, match="'a': 1, 'b': 2"):
        parametrize_config_pointwise(a=[1], b=[1, 2])


def test_settings_are_light_to_import_and_read():
    heavy = {"asyncio", "inspect", "dataclasses", "typing", "enum", "json", "tomllib", "pathlib"}
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; from monarch import config; "
        f"config.value('stop_actor_timeout'); print(sorted({heavy} & set(sys.modules)))"
    )
    command = [sys.executable, "-ISc", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_settings_with_an_effect_are_those_that_the_runtime_reads():
    package = Path(config.__file__).parent.parent
    text = "".join(
        path.read_text() for path in package.rglob("*.py") if path.parent.name != "config"
    )
    read = {name for name in config.SETTINGS if f'"{name}"' in text}
    assert read == {name for name, (_, _, effect, _) in config.SETTINGS.items() if effect}
