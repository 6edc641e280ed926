from __future__ import annotations

import pytest

from port.errors import InputError
from port.policy import KEYS, PLATFORMS, load, parse

HEAD = 'schema = 1\nplatform = "cuda"\n'


@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_shipped_policy_loads_and_names_its_platform(platform):
    policy = load(platform)
    assert policy.platform == platform
    assert policy.distribution == f"monarch-{platform}"


def test_rocm_runtime_is_required_and_never_grafted():
    policy = load("rocm")
    assert policy.needed_required == ("libamdhip64.so.*",)
    assert policy.repair_exclude == ("libamdhip64.so.*",)
    assert "libamdhip64" in policy.bundled_forbidden


def test_absent_key_demands_nothing():
    policy = parse(HEAD, "p.toml")
    assert policy.needed_forbidden == ()
    assert policy.exports_allowed is None
    assert policy.size_wheel is None
    assert policy.runtime_linkage == "any"


def test_policy_for_others_reports_device_code_instead_of_demanding_it():
    policy = load("cuda").for_others()
    assert not policy.device_required
    assert policy.exports_allowed is None
    assert policy.size_wheel is None
    assert policy.needed_forbidden == load("cuda").needed_forbidden


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (HEAD + "[needed]\nrequierd = []\n", 4, "needed.requierd"),
        (HEAD + "\n[needed]\nrequired = 'libx.so'\n", 5, "needed.required"),
        (HEAD + "[size]\nwheel = -1\n", 4, "size.wheel"),
        (HEAD + "[size]\nwheel = true\n", 4, "size.wheel"),
        (HEAD + "[device]\nrequired = 1\n", 4, "device.required"),
        (HEAD + "[rpath]\ntag = 'both'\n", 4, "rpath.tag"),
        (HEAD + "[neded]\n", 3, "neded"),
        (HEAD + "size = 3\n", 3, "size"),
        (HEAD + "size.wheel = 0\n", 3, "size.wheel"),
        (HEAD + '[provided]\n"torch" = [1]\n', 4, "provided.torch"),
        (HEAD + "[tag]\nnewest = '2.34'\n", 4, "tag.newest"),
        ("platform = 'cuda'\n\nschema = 2\n", 3, "schema"),
        ("schema = 1\nplatform = 'cude'\n", 2, "platform"),
        ("schema = 1\n", 1, "platform"),
        ("platform = 'cuda'\n", 1, "schema"),
    ],
)
def test_bad_key_is_named_with_file_and_line(text, line, key):
    with pytest.raises(InputError) as error:
        parse(text, "my.toml")
    assert str(error.value).startswith(f"my.toml:{line}: {key}: ")
    assert error.value.exit_code == 2


def test_broken_toml_names_file_and_line():
    with pytest.raises(InputError, match=r"^my\.toml:3: not TOML"):
        parse(HEAD + "[needed\n", "my.toml")


def test_a_file_nested_without_end_is_a_one_line_error():
    with pytest.raises(InputError, match=r"^my\.toml:1: nested too deeply"):
        parse(f"{HEAD}needed = {'[' * 99_999}", "my.toml")


def test_missing_and_undecodable_files_are_one_line_errors(tmp_path):
    with pytest.raises(InputError, match="cannot read the policy file"):
        load(tmp_path / "none.toml")
    path = tmp_path / "latin.toml"
    path.write_bytes(b"schema = 1 # \xff\n")
    with pytest.raises(InputError, match="UTF-8"):
        load(path)


def test_near_miss_is_suggested():
    with pytest.raises(InputError, match="did you mean forbidden"):
        parse(HEAD + "[needed]\nforbiden = []\n", "p.toml")


def test_every_documented_key_is_taken():
    values = {
        "a list of strings": "['x']",
        "a positive integer": "7",
        "true or false": "true",
        "a string": "'x'",
        "a tag such as manylinux_2_34": "'manylinux_2_28'",
    }
    for (table, key), (field, wanted, meaning) in KEYS.items():
        assert meaning
        if not table or table == "provided":
            continue
        value = values.get(wanted) or repr(wanted.removeprefix("one of ").split(", ")[-1])
        policy = parse(f"{HEAD}[{table}]\n{key} = {value}\n", "p.toml")
        assert getattr(policy, field) != getattr(parse(HEAD, "p.toml"), field)
