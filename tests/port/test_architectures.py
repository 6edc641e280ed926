from __future__ import annotations

import pytest

from port.architectures import check_devices, choose, gfx_name, probe
from port.errors import EnvironmentMissingError, InputError
from tests.port import toolkit_trees as trees


def test_defaults_are_those_the_compiler_has():
    assert choose("rocm", None, ("gfx906", "gfx90a")) == ("gfx90a",)
    assert choose("cuda", None, ("sm_75", "sm_80", "sm_90")) == ("sm_80", "sm_90")
    assert choose("rocm", None, ()) == ("gfx90a", "gfx942", "gfx950")
    assert choose("cpu", None, ()) == ()


def test_a_compiler_without_any_default_is_an_environment_error():
    with pytest.raises(EnvironmentMissingError, match="it has gfx803"):
        choose("rocm", None, ("gfx803",))


def test_asked_names_are_taken_in_order_and_once():
    assert choose("rocm", "gfx942;gfx90a, gfx942", ()) == ("gfx942", "gfx90a")
    assert choose("rocm", "gfx90a:xnack+", ("gfx90a",)) == ("gfx90a:xnack+",)
    assert choose("cuda", "sm_90a", ("sm_90",)) == ("sm_90a",)


@pytest.mark.report("55")
@pytest.mark.parametrize(
    ("platform", "asked", "said"),
    [
        ("rocm", "sm_90", "belongs to cuda, and this build is for rocm"),
        ("cuda", "gfx1100", "belongs to rocm, and this build is for cuda"),
        ("cuda", "hopper", "is none of cuda"),
        ("rocm", "gfx942", "does not have it; it has gfx90a"),
        ("cuda", " , ", "no architecture in"),
        ("cpu", "sm_90", "the platform cpu has none"),
    ],
)
def test_wrong_names_are_refused(platform, asked, said):
    with pytest.raises(InputError, match=said):
        choose(platform, asked, ("gfx90a",) if platform == "rocm" else ("sm_90",))


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (90402, "gfx942"),
        (90010, "gfx90a"),
        (90500, "gfx950"),
        (110000, "gfx1100"),
        (90006, "gfx906"),
    ],
)
def test_amd_names_from_the_kernels_numbers(number, name):
    assert gfx_name(number) == name


def test_the_probe_reads_the_kernels_topology(tmp_path):
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    trees.write(nodes / "0/properties", "cpu_cores_count 8\ngfx_target_version 0\n")
    for node in range(1, 11):
        trees.write(nodes / f"{node}/properties", "simd_count 304\ngfx_target_version 90402\n")
    trees.write(nodes / "11/properties", "gfx_target_version 90010\n")
    assert probe("rocm", tmp_path) == ("gfx942", "gfx90a")
    assert probe("rocm", tmp_path / "elsewhere") == ()
    assert probe("cpu", tmp_path) == ()


@pytest.mark.report("58")
def test_a_device_that_is_not_built_for_stops_the_build_naming_both():
    with pytest.raises(InputError, match="GPU is gfx942, and the build is for gfx950"):
        check_devices(("gfx950",), ("gfx942",), cross=False)


@pytest.mark.report("58")
def test_cross_building_is_let_through():
    check_devices(("gfx950",), ("gfx942",), cross=True)


@pytest.mark.parametrize(
    ("asked", "device", "runs"),
    [
        ("gfx90a:xnack+", "gfx90a", True),
        ("sm_80", "sm_86", True),
        ("sm_86", "sm_80", False),
        ("sm_90", "sm_100", False),
        ("sm_90a", "sm_90", True),
        ("sm_100a", "sm_103", False),
        ("sm_100f", "sm_103", True),
    ],
)
def test_which_device_runs_what(asked, device, runs):
    if runs:
        check_devices((asked,), (device,), cross=False)
    else:
        with pytest.raises(InputError, match=device):
            check_devices((asked,), (device,), cross=False)


def test_no_device_is_no_reason_to_stop():
    check_devices(("gfx950",), (), cross=False)
