"""One fixture for each code that fails that check alone, and clean ones that fail none."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from port.policy import load, parse
from port.verify import verify
from port.verify.report import NAMES
from port.verify.words import labels, majors
from tests.port.verify import elf_writer as w
from tests.port.verify.commands import failing

# V23 is about sources, not about a target: test_sources.py.
CODES = sorted(set(NAMES) - {"V23"})
CUDA, ROCM, CPU = "demo-cuda", "demo-rocm", "demo-cpu"
BUILD_INFO = (
    'PLATFORM = "rocm"\nVERSION = "1.0"\n'
    'RUNTIME_VERSION = "6.4"\nRUNTIME_SONAME = "libamdhip64.so.6"\n'
)


def cuda_with(folder, **changes):
    return w.wheel(folder, {"demo/_C.so": w.cuda_module(**changes)}, CUDA)


def hip_with(folder, **changes):
    return w.wheel(folder, {"demo/_C.so": w.hip_module(**changes)}, ROCM)


def v01(folder):
    return cuda_with(folder, needed=["libcudart.so.13", "libc.so.6"], rodata=b"x"), {}


def v02(folder):
    return cuda_with(folder, needed=["libcuda.so.1", "libc.so.6"]), {}


def v03(folder):
    files = {
        "demo/_C.so": w.hip_module(),
        "demo/lib/librocblas.so.4": w.elf(soname="librocblas.so.4"),
    }
    return w.wheel(folder, files, ROCM), {}


def v04(folder):
    files = {"demo/_C.so": w.hip_module()}
    return w.wheel(folder, files, ROCM, "1.0+rocm7.1"), {}


def v05(folder):
    return cuda_with(folder, runpath="$ORIGIN:/build/lib"), {}


def v06(folder):
    policy = parse('schema = 1\nplatform = "cuda"\n[rpath]\ntag = "runpath"\n', "p.toml")
    return cuda_with(folder, rpath="$ORIGIN"), {"policy": policy}


def v07(folder):
    (folder / "before").mkdir()
    before = cuda_with(folder / "before")
    code = bytearray(w.fatbin("sm_80", "sm_90"))
    code[-1] ^= 1
    return cuda_with(folder, device={".nv_fatbin": bytes(code)}), {"before": before}


def v08(folder):
    return cuda_with(folder, needs={**w.LIBC, "libm-1a2b3c4d.so.6": ["GLIBC_2.2.5"]}), {}


def v09(folder):
    return hip_with(
        folder, device={".hip_fatbin": w.bundle("gfx90a"), ".nv_fatbin": w.fatbin("sm_80")}
    ), {}


def v10(folder):
    return hip_with(folder), {"architectures": ["gfx1100"]}


def v11(folder):
    return cuda_with(folder, needs={"libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.34"]}), {}


def v12(folder):
    module = w.hip_module(
        needed=["libamdhip64.so.7", "libc.so.6"], needs=w.LIBC, undefined=["PyList_New"]
    )
    return w.wheel(folder, {"demo/_C.so": module}, ROCM, "1.0+rocm82"), {}


def v13(folder):
    policy = parse('schema = 1\nplatform = "cuda"\n[size]\nfile = 1000\n', "p.toml")
    return cuda_with(folder), {"policy": policy}


def v14(folder):
    files = {
        "demo/_C.so": w.hip_module(),
        "demo/_build_info.py": BUILD_INFO.replace("1.0", "1.1").encode(),
    }
    return w.wheel(folder, files, ROCM), {}


def v15(folder):
    return cuda_with(folder, undefined=["X509_NAME_free"]), {}


def v16(folder):
    def change(files):
        files["demo/__init__.py"] = b"changed = 1\n"

    return w.wheel(
        folder, {"demo/_C.so": w.cuda_module(), "demo/__init__.py": b""}, CUDA, change=change
    ), {}


def v17(folder):
    return cuda_with(folder, stack=True), {}


def v18(folder):
    return cuda_with(folder, exported=["PyInit__C", "SSL_new", "X509_free"]), {}


def v19(folder):
    path = cuda_with(folder)
    path.write_bytes(path.read_bytes() + b"more")
    return path, {}


def v20(folder):
    return w.wheel(
        folder, {"demo/_C.so": w.cuda_module(), "demo/_D.so": b"\x7fELF\x02\x01\x01 cut"}, CUDA
    ), {}


def v21(folder):
    stand_in = w.elf(soname="libfake.so.1", exported=["monarch_standin"])
    return w.wheel(folder, {"demo/_C.so": w.cuda_module(), "demo/libfake.so.1": stand_in}, CUDA), {}


def v22(folder):
    files = {
        "demo/_C.so": w.cuda_module(),
        "demo.libs/libt-1111.so.1": w.elf(),
        "demo.libs/libt-2222.so.1": w.elf(),
    }
    return w.wheel(folder, files, CUDA), {}


FIXTURES = {
    name.upper(): make for name, make in list(globals().items()) if re.fullmatch(r"v\d\d", name)
}


@pytest.mark.promise("B11")
@pytest.mark.parametrize("code", CODES)
def test_fixture_fails_exactly_its_own_check(code, tmp_path):
    path, options = FIXTURES[code](tmp_path)
    report = verify(path, **options)
    assert failing(report) == {code}
    for check in report.checks:
        assert bool(check.remedy) != check.ok
        assert check.detail
    assert report.ok == (code == "V22")


@pytest.mark.parametrize(
    ("name", "module", "platform"),
    [(CUDA, w.cuda_module, "cuda"), (ROCM, w.hip_module, "rocm"), (CPU, w.cpu_module, "cpu")],
)
def test_clean_wheel_fails_none(name, module, platform, tmp_path):
    report = verify(w.wheel(tmp_path, {"demo/_C.so": module()}, name))
    assert report.platform == platform
    assert failing(report) == set()
    assert {check.code for check in report.checks} == set(CODES)


@pytest.mark.parametrize("platform", ["cuda", "rocm", "cpu"])
def test_own_distribution_is_held_to_its_whole_policy(platform, tmp_path):
    module = {"cuda": w.cuda_module, "rocm": w.hip_module, "cpu": w.cpu_module}[platform]
    clean = w.wheel(tmp_path, {"monarch/_C.so": module()}, f"monarch-{platform}")
    assert failing(verify(clean)) == set()
    assert verify(clean, policy=load(platform)).ok
    leaking = w.wheel(
        tmp_path, {"monarch/_C.so": module(exported=["PyInit__C", "_Zleak"])}, f"monarch-{platform}"
    )
    assert failing(verify(leaking)) == {"V18"}
    without = w.wheel(
        tmp_path, {"monarch/_C.so": module(device=None, wrapper=None)}, f"monarch-{platform}"
    )
    assert failing(verify(without)) == ({"V10"} if platform != "cpu" else set())


def test_declared_architecture_that_is_absent_is_an_error(tmp_path):
    info = BUILD_INFO + "ARCHITECTURES = ('gfx90a', 'gfx950')\n"
    files = {"demo/_C.so": w.hip_module(), "demo/_build_info.py": info.encode()}
    report = verify(w.wheel(tmp_path, files, ROCM))
    (check,) = [check for check in report.checks if not check.ok]
    assert check.code == "V10"
    assert "gfx950" in check.detail
    assert "_build_info.py" in check.detail


def test_others_wheels_report_device_code_and_sizes_without_demanding_them(tmp_path):
    report = verify(
        w.wheel(tmp_path, {"demo/_C.so": w.cuda_module(device=None, wrapper=None)}, CUDA)
    )
    assert report.ok
    assert any(check.code == "V10" and "no device code" in check.detail for check in report.checks)


def test_policy_file_demands_what_it_says(tmp_path):
    policy = load("cuda")
    report = verify(
        w.wheel(tmp_path, {"demo/_C.so": w.cuda_module(device=None, wrapper=None)}, CUDA),
        policy=policy,
    )
    assert failing(report) == {"V10"}


@pytest.mark.parametrize(
    ("symbols", "changes", "codes"),
    [
        (["SSL_new"], {}, {"V18"}),
        (["__cxa_throw"], {}, {"V18"}),
        (["_ZNSt8ios_base4InitC1Ev"], {}, {"V18"}),
        (["_ZNSt9exceptionD1Ev"], {}, {"V18"}),
        (["_ZSt28__throw_bad_array_new_lengthv", "_ZNSt11logic_errorC1EOS_"], {}, set()),
        (["_ZNKSt4hashI3FooEclERKS0_"], {}, set()),
        (["inflateInit2_"], {}, {"V18"}),
        (["cudaMalloc"], {}, {"V18"}),
        (["cudaMalloc"], {"rodata": b"", "device": None, "wrapper": None}, set()),
        (["_ZN4demo3runEv", "demo_run"], {}, set()),
    ],
)
def test_exports_that_clash_are_those_of_libraries_inside(symbols, changes, codes, tmp_path):
    module = w.cuda_module(exported=["PyInit__C", *symbols], **changes)
    policy = parse('schema = 1\nplatform = "cuda"\n', "p.toml")
    path = w.wheel(tmp_path, {"demo/_C.so": module}, CUDA)
    assert failing(verify(path, policy=policy)) == codes
    library = w.elf(exported=symbols, soname="libdemo.so")
    path = w.wheel(tmp_path, {"demo/libdemo.so": library}, CPU)
    assert failing(verify(path)) == set()


def test_other_exports_of_strangers_are_a_warning(tmp_path):
    path = cuda_with(tmp_path, exported=["PyInit__C", "demo_run"])
    report = verify(path)
    assert failing(report) == {"V18"}
    assert report.ok


def test_moved_device_code_is_seen_by_the_wrapper_that_points_at_it(tmp_path):
    for shift in (8, 1 << 20):
        path = cuda_with(tmp_path, wrapper=(".nvFatBinSegment", 0x466243B1, shift))
        assert failing(verify(path)) == {"V07"}


def test_static_runtime_is_proven_and_the_dynamic_control_fails(tmp_path):
    static = verify(cuda_with(tmp_path))
    (check,) = [check for check in static.checks if check.code == "V01"]
    assert check.ok
    assert "static CUDA runtime" in check.detail
    for changes in (
        {"needed": ["libcudart.so.12"]},
        {"undefined": ["cudaMalloc"], "needed": []},
        {"rodata": b"cudart.shm\0"},
        {"rodata": b""},
    ):
        report = verify(cuda_with(tmp_path, **changes), platform="cuda")
        assert not report.ok
        assert "V01" in failing(report)


@pytest.mark.parametrize(
    ("needs", "tag", "code"),
    [
        ("GLIBC_2.34", "manylinux_2_34_x86_64", None),
        ("GLIBC_2.35", "manylinux_2_34_x86_64", "V11"),
        ("GLIBC_2.17", "manylinux2014_x86_64", None),
        ("GLIBC_2.18", "manylinux2014_x86_64", "V11"),
        ("GLIBC_2.17", "manylinux_2_17_x86_64.manylinux_2_28_x86_64", None),
        ("GLIBC_2.25", "manylinux_2_17_x86_64.manylinux_2_28_x86_64", "V11"),
        ("GLIBC_ABI_DT_RELR", "manylinux_2_35_x86_64", "V11"),
        ("GLIBC_2.17", "manylinux_2_35_x86_64", "V11"),
        ("GLIBC_2.17", "linux_x86_64", "V11"),
        ("GLIBC_2.17", "musllinux_1_2_x86_64", "V11"),
        ("GLIBC_2.17", "any", "V11"),
    ],
)
def test_tag_is_held_against_the_symbols(needs, tag, code, tmp_path):
    module = w.cuda_module(needs={"libc.so.6": ["GLIBC_2.2.5", needs]})
    report = verify(w.wheel(tmp_path, {"demo/_C.so": module}, CUDA, tag=f"cp311-cp311-{tag}"))
    assert failing(report) == ({code} if code else set())


def test_tag_newer_than_needed_is_a_warning(tmp_path):
    report = verify(
        w.wheel(
            tmp_path, {"demo/_C.so": w.cuda_module()}, CUDA, tag="cp311-cp311-manylinux_2_35_x86_64"
        )
    )
    assert report.ok
    (check,) = [check for check in report.checks if not check.ok]
    assert check.severity == "warning"
    assert "manylinux_2_5" in check.detail


def test_libstdcxx_that_is_bundled_lowers_no_tag(tmp_path):
    own = "libstdc++-0a1b2c3d.so.6"
    module = w.cuda_module(
        needed=[own, "libc.so.6"],
        needs={**w.LIBC, own: ["GLIBCXX_3.4.31"]},
        runpath="$ORIGIN/../demo.libs",
    )
    files = {"demo/_C.so": module, f"demo.libs/{own}": w.elf(soname=own)}
    assert failing(verify(w.wheel(tmp_path, files, CUDA))) == set()


@pytest.mark.parametrize(("major", "minor"), [(5, 7), (6, 4), (7, 12), (10, 0), (20, 1)])
def test_label_and_linked_major_are_compared_as_versions(major, minor, tmp_path):
    module = w.hip_module(
        needed=[f"libamdhip64.so.{major}", "libc.so.6"], needs=w.LIBC, undefined=["PyList_New"]
    )
    files = {"demo/_C.so": module}
    right = w.wheel(tmp_path, files, ROCM, f"1.0+rocm{major}.{minor}")
    assert failing(verify(right)) == set()
    wrong = w.wheel(tmp_path, files, ROCM, f"1.0+rocm{major + 1}.{minor}")
    assert failing(verify(wrong)) == {"V04"}


@given(major=st.integers(5, 20), minor=st.integers(0, 30))
def test_labels_give_back_the_major_of_every_version(major, minor):
    ((platform, number),) = labels(f"1.0+rocm{major}.{minor}")
    assert (platform, majors(platform, number)) == ("rocm", {major})
    if minor < 10:
        assert major in majors("rocm", f"{major}{minor}")
    else:
        assert major not in majors("rocm", str(10 * major + minor))


@pytest.mark.parametrize(
    ("label", "codes"), [("82", {"V12"}), ("84", {"V12"}), ("72", set()), ("64", {"V04"})]
)
def test_label_made_by_arithmetic_is_told_from_a_short_one(label, codes, tmp_path):
    module = w.hip_module(
        needed=["libamdhip64.so.7", "libc.so.6"], needs=w.LIBC, undefined=["PyList_New"]
    )
    files = {f"demo/libdemo_rocm{label}.so": module}
    assert failing(verify(w.wheel(tmp_path, files, "demo"))) == codes


def test_time_grows_with_the_number_of_libraries_not_with_its_square(tmp_path):
    """Hundreds of libraries, each needing the one before it."""

    def seconds(count):
        files = {
            f"demo.libs/lib{n}.so": w.elf(
                needed=[f"lib{n - 1}.so", "libc.so.6"] if n else ["libc.so.6"],
                soname=f"lib{n}.so",
                runpath="$ORIGIN",
            )
            for n in range(count)
        }
        path = w.wheel(tmp_path, files, "demo", str(count))
        started = time.process_time()
        assert failing(verify(path)) == set()
        return time.process_time() - started

    seconds(10)
    assert seconds(400) < 16 * max(seconds(100), 0.05)
