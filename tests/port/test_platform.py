from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from port.errors import EnvironmentMissingError, InputError
from port.platform import detect, plan, rocm_label, survey
from port.toolkits import cuda_version, release, rocm_version
from tests.port import toolkit_trees as trees

REPOSITORY = Path(__file__).parents[2]


def found(root: Path, **environ: str):
    return detect({"PATH": "/bin", **environ}, root=root)


def shown(root: Path, **environ: str):
    return survey({"PATH": "/bin", **environ}, root=root)


# --- the decision -------------------------------------------------------------------------------


def test_nothing_installed_means_cpu(tmp_path):
    detection = found(tmp_path)
    assert (detection.decision, detection.toolkits) == ("cpu", ())
    assert detection.chosen() is None


def test_rocm_alone_means_rocm(tmp_path):
    trees.rocm(tmp_path / "opt/rocm")
    assert found(tmp_path).decision == "rocm"


def test_cuda_alone_means_cuda(tmp_path):
    trees.cuda(tmp_path / "usr/local/cuda")
    assert found(tmp_path).decision == "cuda"


def test_both_is_a_question_that_names_them_and_the_variable(tmp_path):
    trees.cuda(tmp_path / "usr/local/cuda")
    trees.rocm(tmp_path / "opt/rocm")
    with pytest.raises(InputError, match=r"CUDA 13\.0 .*ROCm 6\.4.* set GPU_PLATFORM to cuda"):
        found(tmp_path)


@pytest.mark.parametrize("value", ["cpu", "cuda", "rocm"])
def test_the_variable_decides_whatever_is_installed(tmp_path, value):
    trees.cuda(tmp_path / "usr/local/cuda")
    trees.rocm(tmp_path / "opt/rocm")
    detection = found(tmp_path, GPU_PLATFORM=value)
    assert detection.decision == value
    assert (detection.chosen().kind if detection.chosen() else "cpu") == value


@pytest.mark.parametrize("value", ["hip", "CUDA", "", "rocm "])
def test_an_unknown_value_names_the_three(tmp_path, value):
    with pytest.raises(InputError, match="cpu, cuda, rocm"):
        found(tmp_path, GPU_PLATFORM=value)


def test_rocm_asked_and_none_found_lists_the_places_and_what_to_install(tmp_path):
    with pytest.raises(EnvironmentMissingError) as raised:
        found(tmp_path, GPU_PLATFORM="rocm", ROCM_PATH="/elsewhere")
    text = str(raised.value)
    for part in ("ROCM_PATH", "/elsewhere", "hipcc on PATH", "/opt/rocm", "apt-get install hipcc"):
        assert part in text


def test_rocm_asked_on_a_debian_leaves_the_fetching_to_the_build(tmp_path):
    trees.write(tmp_path / "etc/debian_version", "12.5\n")
    trees.script(tmp_path / "bin/apt-get", "exit 0")
    detection = found(tmp_path, GPU_PLATFORM="rocm")
    assert detection.can_fetch
    assert detection.chosen() is None


def test_wheels_of_cuda_parts_are_no_evidence(tmp_path):
    site = tmp_path / "usr/lib/python3/site-packages/nvidia"
    trees.cuda(site / "cu13")
    trees.cuda(site / "cuda_runtime")
    assert found(tmp_path, PYTHONPATH="/usr/lib/python3/site-packages").decision == "cpu"


# --- where toolkits are found -------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_cuda_by_variable(tmp_path, variable):
    home = trees.cuda(tmp_path / "tools/cuda")
    (toolkit,) = found(tmp_path, **{variable: "/tools/cuda"}).toolkits
    assert (toolkit.found_by, toolkit.root, toolkit.version) == (variable, home, Version("13.0"))
    assert toolkit.compiler == home / "bin/nvcc"
    assert toolkit.library == home / "lib64"


@pytest.mark.report("54")
@pytest.mark.parametrize("variable", ["ROCM_PATH", "ROCM_HOME"])
def test_rocm_by_variable_needs_no_word_of_cuda(tmp_path, variable):
    trees.rocm(tmp_path / "tools/rocm")
    detection = found(tmp_path, **{variable: "/tools/rocm"})
    assert detection.decision == "rocm"
    assert detection.chosen().found_by == variable


def test_a_variable_goes_before_path_and_fixed_folders(tmp_path):
    trees.cuda(tmp_path / "usr/local/cuda", 13000)
    trees.cuda(tmp_path / "old", 12040)
    detection = found(tmp_path, CUDA_HOME="/old")
    assert [str(toolkit.version) for toolkit in detection.toolkits] == ["12.4", "13.0"]
    assert detection.chosen().version == Version("12.4")


def test_a_variable_that_leads_nowhere_is_shown_and_does_not_stop_others(tmp_path):
    trees.rocm(tmp_path / "opt/rocm")
    detection = found(tmp_path, CUDA_HOME="/gone")
    assert detection.decision == "rocm"
    assert any(s.by == "CUDA_HOME" and s.result == "no such folder" for s in detection.searched)


def test_nvcc_on_path_through_a_link(tmp_path):
    home = trees.cuda(tmp_path / "store/cuda-13")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nvcc").symlink_to(home / "bin/nvcc")
    (toolkit,) = found(tmp_path).toolkits
    assert (toolkit.root, toolkit.found_by) == (home, "nvcc on PATH")


def test_nvcc_on_path_through_a_wrapper_script(tmp_path):
    home = trees.cuda(tmp_path / "store/cuda-13")
    trees.script(tmp_path / "bin/nvcc", f'exec "{home}/bin/nvcc" "$@"')
    (toolkit,) = found(tmp_path).toolkits
    assert toolkit.root == home
    assert toolkit.architectures == ("sm_75", "sm_80", "sm_90", "sm_100")


def test_hipcc_on_path_through_a_wrapper_script(tmp_path):
    home = trees.rocm(tmp_path / "store/rocm-6.4.0")
    trees.script(home / "bin/hipcc", "exit 0")
    trees.script(tmp_path / "bin/hipcc", 'exec /store/rocm-6.4.0/bin/hipcc "$@"')
    (toolkit,) = found(tmp_path).toolkits
    assert (toolkit.root, toolkit.found_by) == (home, "hipcc on PATH")
    assert toolkit.compiler == home / "bin/hipcc"


def test_debians_layout(tmp_path):
    trees.rocm(tmp_path / "usr", (5, 2, 21153), library="lib/x86_64-linux-gnu")
    trees.script(tmp_path / "usr/bin/hipcc", "exec ${CLANG:-clang++-15}")
    # As Debian 12's, which asks for the device libraries unless told that none are needed.
    clang = (
        'case "$*" in *-nogpulib*) ;; *) echo "cannot find ROCm device library"; exit 1 ;; esac\n'
        "printf 'Available CPUs for this target:\\n\\n\\tgfx906\\n\\tgfx90a\\n'"
    )
    trees.script(tmp_path / "usr/bin/clang++-15", clang)
    (toolkit,) = found(tmp_path, PATH="/usr/bin:/bin").toolkits
    assert toolkit.library == tmp_path / "usr/lib/x86_64-linux-gnu"
    assert toolkit.include == tmp_path / "usr/include"
    assert toolkit.version == Version("5.2.21153")
    assert toolkit.architectures == ("gfx906", "gfx90a")


def test_the_layout_of_cross_targets(tmp_path):
    home = trees.cuda(tmp_path / "opt/conda")
    (home / "targets/x86_64-linux").mkdir(parents=True)
    (home / "include").rename(home / "targets/x86_64-linux/include")
    (home / "lib64").rename(home / "targets/x86_64-linux/lib")
    (toolkit,) = found(tmp_path, CUDA_HOME="/opt/conda").toolkits
    assert toolkit.include == home / "targets/x86_64-linux/include"


def test_one_toolkit_reached_in_two_ways_is_one(tmp_path):
    home = trees.cuda(tmp_path / "usr/local/cuda-13.0")
    (tmp_path / "usr/local/cuda").symlink_to(home)
    detection = found(tmp_path, PATH="/usr/local/cuda/bin")
    assert len(detection.toolkits) == 1
    assert any("the same as nvcc on PATH" in s.result for s in detection.searched)


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        ("include/cuda.h", "no cuda.h"),
        ("include/cuda_runtime_api.h", "no cuda_runtime_api.h beside it"),
        ("lib64/libcudart_static.a", "headers, but no libcudart_static.a"),
    ],
)
def test_half_a_cuda_is_none_and_says_what_lacks(tmp_path, removed, said):
    (trees.cuda(tmp_path / "usr/local/cuda") / removed).unlink()
    detection = found(tmp_path)
    assert detection.decision == "cpu"
    assert any(said in s.result for s in detection.searched)


def test_a_hipcc_without_a_library_is_no_rocm(tmp_path):
    home = trees.rocm(tmp_path / "opt/rocm")
    (home / "lib/libamdhip64.so.6").unlink()
    assert found(tmp_path).decision == "cpu"


# --- versions -----------------------------------------------------------------------------------


@given(major=st.integers(5, 20), minor=st.integers(0, 99), patch=st.integers(0, 99999))
def test_rocm_versions_survive_any_number(tmp_path_factory, major, minor, patch):
    home = trees.rocm(tmp_path_factory.mktemp("rocm"), (major, minor, patch))
    version = rocm_version(home, home / "include")
    assert (version.major, version.minor, version.micro) == (major, minor, patch)
    assert rocm_label(version) == f"rocm{major}.{minor}"


@given(major=st.integers(5, 20), minor=st.integers(0, 99))
def test_cuda_versions_survive_any_number(tmp_path_factory, major, minor):
    home = trees.cuda(tmp_path_factory.mktemp("cuda"), 1000 * major + 10 * minor)
    assert release(cuda_version(home, home / "include")) == f"{major}.{minor}"


@given(
    st.tuples(st.integers(5, 20), st.integers(0, 30)),
    st.tuples(st.integers(5, 20), st.integers(0, 30)),
)
def test_versions_order_as_numbers(one, other):
    texts = [Version(f"{major}.{minor}") for major, minor in (one, other)]
    assert (texts[0] < texts[1]) == (one < other)
    assert (rocm_label(texts[0]) == rocm_label(texts[1])) == (one == other)


@pytest.mark.report("53")
@pytest.mark.parametrize("text", ["6.4", "7.0", "7.12", "10.0"])
def test_labels_are_never_made_by_arithmetic(text):
    assert rocm_label(Version(text)) == f"rocm{text}"


def test_ten_point_one_is_not_one_point_ten(tmp_path):
    home = trees.cuda(tmp_path, 10010)
    assert cuda_version(home, home / "include") == Version("10.1")


def test_the_patch_number_comes_from_the_version_file_of_the_same_release(tmp_path):
    home = trees.cuda(tmp_path / "c", 12090)
    trees.write(home / "version.json", json.dumps({"cuda": {"version": "12.9.1"}}))
    assert cuda_version(home, home / "include") == Version("12.9.1")
    home = trees.rocm(tmp_path / "r", (7, 12, 1))
    trees.write(home / ".info/version", "7.12.0-5611\n")
    assert rocm_version(home, home / "include") == Version("7.12.0")


def test_headers_win_over_a_version_file_of_another_release(tmp_path):
    home = trees.rocm(tmp_path, (6, 4, 1))
    trees.write(home / ".info/version", "7.0.0\n")
    assert rocm_version(home, home / "include") == Version("6.4.1")


@pytest.mark.parametrize("text", ["nonsense", "{", '{"cuda": 3}', "[" * 99_999])
def test_a_broken_version_file_leaves_the_headers_word(tmp_path, text):
    trees.write(trees.cuda(tmp_path / "usr/local/cuda") / "version.json", text)
    assert found(tmp_path).chosen().version == Version("13.0")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda root: trees.cuda(root / "usr/local/cuda", 11080),
            r"CUDA 11\.8.*CUDA 12\.0 or newer",
        ),
        (lambda root: trees.rocm(root / "opt/rocm", (5, 1, 9)), r"ROCm 5\.1.*ROCm 5\.2 or newer"),
    ],
)
def test_a_release_below_the_floor_names_the_floor(tmp_path, make, said):
    make(tmp_path)
    with pytest.raises(InputError, match=said):
        found(tmp_path)


def test_headers_without_a_version_are_refused(tmp_path):
    trees.write(trees.rocm(tmp_path / "opt/rocm") / "include/hip/hip_version.h", "")
    with pytest.raises(InputError, match="name no version"):
        found(tmp_path)


def test_an_old_toolkit_of_the_other_platform_does_not_matter(tmp_path):
    trees.cuda(tmp_path / "usr/local/cuda", 11080)
    assert found(tmp_path, GPU_PLATFORM="cpu").decision == "cpu"


# --- what is printed ----------------------------------------------------------------------------


def test_the_table_says_where_and_why(tmp_path):
    trees.cuda(tmp_path / "usr/local/cuda")
    table = found(tmp_path, CUDA_PATH="/gone").table()
    for part in ("GPU_PLATFORM", "not set", "CUDA_PATH", "no such folder", "/opt/rocm", "sm_90"):
        assert part in table


def _run(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    # This machine's own toolkits may be anything: only the variable's effect is looked at.
    return subprocess.run(
        [sys.executable, "-m", "port.platform", *args],
        cwd=REPOSITORY,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_prints_one_object():
    done = _run("--json", GPU_PLATFORM="cpu")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert (answer["schema"], answer["decision"]) == (1, "cpu")
    assert {place["by"] for place in answer["searched"]} >= {
        "CUDA_HOME",
        "CUDA_PATH",
        "nvcc on PATH",
        "ROCM_PATH",
        "ROCM_HOME",
        "hipcc on PATH",
        "/opt/rocm",
    }


def test_the_command_fails_with_two_for_an_unknown_value_after_its_table():
    done = _run(GPU_PLATFORM="metal")
    assert done.returncode == 2
    assert "hipcc on PATH" in done.stdout
    assert "cpu, cuda, rocm" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_failing_command_still_prints_one_object():
    done = _run("--json", GPU_PLATFORM="metal")
    answer = json.loads(done.stdout)
    assert done.returncode == 2
    assert answer["decision"] is None
    assert "cpu, cuda, rocm" in answer["error"]


@pytest.mark.parametrize(
    ("platform", "asked", "said"),
    [
        ("cuda", "sm_90;sm_100", "architectures sm_90, sm_100"),
        ("cuda", "", "architectures sm_80, sm_90, sm_100"),
        ("rocm", "gfx1100", "architectures gfx1100"),
    ],
)
def test_the_plan_names_the_architectures_that_were_asked_for(tmp_path, platform, asked, said):
    trees.cuda(tmp_path / "usr/local/cuda")
    trees.rocm(tmp_path / "opt/rocm")
    detection = found(tmp_path, GPU_PLATFORM=platform, GPU_ARCHITECTURES=asked)
    assert said in plan(detection)
    assert (asked or "not set") in detection.table()


@pytest.mark.report("55")
def test_architectures_of_the_other_platform_are_an_error_of_the_command():
    done = _run(GPU_PLATFORM="rocm", GPU_ARCHITECTURES="sm_90")
    assert done.returncode == 2
    assert "sm_90 belongs to cuda, and this build is for rocm" in done.stderr
