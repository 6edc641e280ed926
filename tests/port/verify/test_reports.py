"""Public field reports about wheels, each with its symptom and the right verdict."""

from __future__ import annotations

import json

import pytest

from port.verify import verify
from tests.port.verify import elf_writer as w
from tests.port.verify.commands import failing, run


def details(report):
    return " ".join(check.detail for check in report.checks if not check.ok)


@pytest.mark.report("26")
def test_driver_library_in_needed_is_named(tmp_path):
    module = w.cuda_module(needed=["libcuda.so.1", "libc.so.6"])
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": module}), "cuda")
    assert not report.ok
    assert "libcuda.so.1" in details(report)


@pytest.mark.report("27")
@pytest.mark.parametrize("name", ["libcuda-ab12cd34.so.1", "libnvidia-ml-0123abcd.so.1"])
def test_renamed_copy_of_the_driver_is_found_by_its_base_name(name, tmp_path):
    files = {"pkg/_C.so": w.cuda_module(), f"pkg.libs/{name}": w.elf()}
    report = verify(w.wheel(tmp_path, files), "cuda")
    assert failing(report) == {"V02"}
    (check,) = [check for check in report.checks if not check.ok]
    assert check.file == f"pkg.libs/{name}"


@pytest.mark.report("27")
def test_renamed_copy_of_the_runtime_is_found_as_well(tmp_path):
    files = {"pkg/_C.so": w.cuda_module(), "pkg.libs/libcudart-ab12cd34.so.12": w.elf()}
    assert failing(verify(w.wheel(tmp_path, files), "cuda")) == {"V01"}


@pytest.mark.report("28")
def test_version_needs_of_a_library_that_needed_does_not_name(tmp_path):
    module = w.elf(
        needed=["libm-1a2b3c4d.so.6", "libc.so.6"],
        needs={**w.LIBC, "libm.so.6": ["GLIBC_2.29"]},
        undefined=[("pow", "GLIBC_2.29")],
    )
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": module}, tag="cp311-cp311-linux_x86_64"), "cpu")
    (check,) = [check for check in report.checks if check.code == "V08"]
    assert not check.ok
    assert "libm.so.6" in check.detail
    assert "libm-1a2b3c4d.so.6" in check.detail


@pytest.mark.report("29")
@pytest.mark.parametrize(("tag", "told"), [("rpath", "DT_RPATH"), ("runpath", "DT_RUNPATH")])
def test_both_tags_are_accepted_and_told(tag, told, tmp_path):
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": w.cpu_module(**{tag: "$ORIGIN/lib"})}), "cpu")
    assert report.ok
    (check,) = [check for check in report.checks if check.code == "V06"]
    assert told in check.detail
    assert check.file == "pkg/_C.so"


@pytest.mark.report("30")
def test_bundled_rocm_libraries_are_all_listed(tmp_path):
    files = {
        "pkg/_C.so": w.hip_module(),
        "lib/librocblas.so.4": w.elf(),
        "pkg.libs/libhsa-runtime64-0f9e8d7c.so.1": w.elf(),
    }
    report = verify(w.wheel(tmp_path, files), "rocm")
    assert failing(report) == {"V03"}
    found = [check for check in report.checks if not check.ok]
    assert {check.file for check in found} == set(files) - {"pkg/_C.so"}
    assert all("librocblas" in c.detail and "libhsa-runtime64" in c.detail for c in found)


@pytest.mark.report("31")
def test_two_management_libraries_in_one_process_are_named(tmp_path):
    files = {
        "pkg/_C.so": w.hip_module(needed=["libamdhip64.so.6", "librocm_smi64.so.7", "libc.so.6"]),
        "pkg/_D.so": w.hip_module(needed=["libamdhip64.so.6", "libamd_smi.so.26", "libc.so.6"]),
    }
    report = verify(w.wheel(tmp_path, files), "rocm")
    assert report.ok
    assert failing(report) == {"V22"}
    assert "librocm_smi64.so.7" in details(report)
    assert "libamd_smi.so.26" in details(report)


@pytest.mark.report("32")
def test_architectures_of_hip_code_are_listed_and_a_missing_one_fails(tmp_path):
    path = w.wheel(tmp_path, {"pkg/_C.so": w.hip_module()})
    done = run(str(path), "--platform", "rocm", "--json")
    assert done.status == 0
    (check,) = [c for c in json.loads(done.out)["checks"] if c["code"] == "V10"]
    assert check["file"] == "pkg/_C.so"
    assert "gfx90a" in check["detail"]
    assert "gfx942" in check["detail"]
    missing = run(str(path), "--platform", "rocm", "--arch", "gfx1100")
    assert missing.status == 1
    assert "gfx1100" in missing.out


@pytest.mark.report("33")
def test_architectures_of_cuda_code_are_listed(tmp_path):
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": w.cuda_module()}), "cuda")
    (check,) = [check for check in report.checks if check.code == "V10"]
    assert check.detail == "sm_80, sm_90"
    assert check.file == "pkg/_C.so"


@pytest.mark.report("33")
def test_hip_kernels_without_device_code_are_reported(tmp_path):
    module = w.hip_module(device=None, undefined=[("__hipRegisterFatBinary", "hip_4.2")])
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": module}), "rocm")
    assert failing(report) == {"V10"}
    assert "pkg/_C.so" in details(report)


@pytest.mark.report("34")
def test_extension_module_that_links_libpython_is_an_error(tmp_path):
    module = w.cpu_module(needed=["libpython3.11.so.1.0", "libc.so.6"])
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": module}), "cpu")
    assert failing(report) == {"V17"}
    assert "libpython3.11.so.1.0" in details(report)


def test_module_that_needs_anothers_symbols_in_the_global_scope(tmp_path):
    module = w.cpu_module(undefined=["PyList_New", "core_open"], needed=["libc.so.6"])
    files = {
        "pkg/_C.so": module,
        "pkg/_core.so": w.cpu_module(exported=["PyInit__core", "core_open"]),
    }
    report = verify(w.wheel(tmp_path, files), "cpu")
    assert failing(report) - {"V18"} == {"V17"}
    assert not report.ok
    assert "core_open" in details(report)
    assert "pkg/_core.so" in details(report)
    linked = w.cpu_module(
        undefined=["core_open"], needed=["_core.so", "libc.so.6"], runpath="$ORIGIN"
    )
    files["pkg/_C.so"] = linked
    (tmp_path / "linked").mkdir()
    assert "V17" not in failing(verify(w.wheel(tmp_path / "linked", files), "cpu"))


def test_file_that_enters_the_global_scope_is_told(tmp_path):
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": w.cpu_module(flags_1=0x3)}), "cpu")
    assert failing(report) == {"V17"}
    assert report.ok
    assert "RTLD_GLOBAL" in details(report)


@pytest.mark.report("35")
def test_one_library_under_two_hashes_is_reported(tmp_path):
    files = {
        "pkg/_C.so": w.cpu_module(),
        "pkg.libs/libt-1111.so.1": w.elf(),
        "pkg.libs/libt-2222.so.1": w.elf(),
    }
    report = verify(w.wheel(tmp_path, files), "cpu")
    assert failing(report) == {"V22"}
    assert "libt-1111.so.1" in details(report)
    assert "libt-2222.so.1" in details(report)


@pytest.mark.report("36")
@pytest.mark.parametrize(
    ("version", "library", "values"),
    [
        ("1.0+cu126", "libcudart.so.13", ("126", "13")),
        ("1.0+rocm6.4", "libamdhip64.so.7", ("6.4", "7")),
        ("1.0+cu126", "libcudart.so.12", None),
        ("1.0+rocm6.4", "libamdhip64.so.6", None),
    ],
)
def test_label_and_linked_major_that_disagree(version, library, values, tmp_path):
    module = w.cpu_module(needed=[library, "libc.so.6"])
    report = verify(w.wheel(tmp_path, {"pkg/_C.so": module}, "pkg", version))
    found = [check for check in report.checks if check.code == "V04" and not check.ok]
    assert bool(found) == (values is not None)
    if values:
        assert not report.ok
        assert all(value in found[0].detail for value in values)


@pytest.mark.report("37")
@pytest.mark.parametrize(
    ("module", "first", "lost"),
    [
        ({"runpath": "$ORIGIN/lib"}, {}, True),
        ({"rpath": "$ORIGIN/lib"}, {}, False),
        ({"runpath": "$ORIGIN/lib"}, {"runpath": "$ORIGIN"}, False),
        ({"rpath": "$ORIGIN/lib"}, {"runpath": "$ORIGIN/elsewhere"}, True),
        ({"runpath": "$ORIGIN/lib", "needed": ["liba.so.1", "libb.so.1", "libc.so.6"]}, {}, False),
        ({"runpath": "$ORIGIN/lib", "needed": ["libb.so.1", "liba.so.1", "libc.so.6"]}, {}, False),
    ],
)
def test_bundled_neighbour_without_a_run_path_to_it(module, first, lost, tmp_path):
    files = {
        "pkg/_C.so": w.cpu_module(**{"needed": ["liba.so.1", "libc.so.6"], **module}),
        "pkg/lib/liba.so.1": w.elf(needed=["libb.so.1", "libc.so.6"], soname="liba.so.1", **first),
        "pkg/lib/libb.so.1": w.elf(soname="libb.so.1"),
    }
    report = verify(w.wheel(tmp_path, files), "cpu")
    assert report.ok != lost
    if lost:
        (check,) = [check for check in report.checks if not check.ok]
        assert check.code == "V05"
        assert check.file == "pkg/lib/liba.so.1"


def test_library_that_exports_a_module_function_is_still_loaded_by_its_user(tmp_path):
    files = {
        "pkg/_C.so": w.cpu_module(needed=["liba.so.1", "libc.so.6"], rpath="$ORIGIN/lib"),
        "pkg/lib/liba.so.1": w.elf(
            needed=["libb.so.1", "libc.so.6"], soname="liba.so.1", exported=["PyInit__C"]
        ),
        "pkg/lib/libb.so.1": w.elf(soname="libb.so.1"),
    }
    assert verify(w.wheel(tmp_path, files), "cpu").ok


@pytest.mark.report("38")
def test_library_that_torch_brings_needs_torch_to_be_required(tmp_path):
    files = {"pkg/_C.so": w.cpu_module(needed=["libc10.so", "libtorch_cpu.so", "libc.so.6"])}
    report = verify(w.wheel(tmp_path, files, requires=["torch>=2.0"]), "cpu")
    assert report.ok
    assert any("from torch: libc10.so, libtorch_cpu.so" in check.detail for check in report.checks)
    without = verify(w.wheel(tmp_path, files), "cpu")
    assert failing(without) == {"V15"}
    assert not without.ok


@pytest.mark.report("120")
def test_pure_wheel_is_fine_for_cpu_and_wrong_for_rocm(tmp_path):
    path = w.wheel(tmp_path, {"six.py": b"x = 1\n"}, "six-like", tag="py3-none-any")
    cpu, rocm = (run(str(path), "--platform", platform) for platform in ("cpu", "rocm"))
    assert cpu.status == 0
    assert rocm.status == 1
    assert "no native code" in cpu.out
    assert "no native code" in rocm.out
    assert failing(verify(path, "rocm")) == {"V20"}


@pytest.mark.report("122")
def test_help_tells_every_option_and_the_exit_statuses():
    done = run("--help")
    assert done.status == 0
    for option in ("--platform", "--policy", "--arch", "--before", "--installed", "--sources"):
        line = next(line for line in done.out.splitlines() if option in line)
        assert len(line.split()) > 2
    assert "--json" in done.out
    for status in ("0 clean", "1 an error", "2 wrong usage", "3 a limit"):
        assert status in " ".join(done.out.split())


@pytest.mark.report("123")
def test_unusual_but_valid_wheels_get_a_verdict(tmp_path):
    files = {
        "pkg/_C.abi3.so": w.cpu_module(),
        "pkg/libx.so": b"/* GNU ld script */\nINPUT(libx.so.1)\n",
        "pkg/libx.so.1": w.elf(soname="libx.so.1"),
        "pkg/data/": b"",
    }

    def change(whole):
        record = next(name for name in whole if name.endswith("RECORD"))
        lines = whole[record].decode().splitlines(keepends=True)
        whole[record] = "".join(line for line in lines if "pkg/data/" not in line).encode()

    path = w.wheel(tmp_path, files, tag="cp312-abi3-manylinux_2_17_x86_64", change=change)
    report = verify(path, "cpu")
    assert failing(report) == set()
    assert any("linker scripts: pkg/libx.so" in check.detail for check in report.checks)
