"""What compilers and repair tools really make, judged as a user would have it judged."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from port.verify import verify
from tests.port.verify import elf_writer as w
from tests.port.verify.commands import failing


def tool(name):
    found = shutil.which(name, path=f"{sysconfig.get_path('scripts')}:/usr/local/bin:/usr/bin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture
def module(tmp_path):
    """An extension module with a CUDA fat binary section, linked by the system's linker."""
    (tmp_path / "code.bin").write_bytes(w.fatbin("sm_80", "sm_90") * 40)
    (tmp_path / "c.c").write_text(
        'static const char *const markers[] = {"cudart.shm", "cudaErrorCudartUnloading"};\n'
        '__asm__(".section .nv_fatbin, \\"a\\"\\n.balign 8\\nfatbin:\\n'
        '.incbin \\"code.bin\\"\\n.previous\\n");\n'
        'extern const char fatbin[] __attribute__((visibility("hidden")));\n'
        "static struct { int magic, version; const void *data, *more; } wrapper\n"
        '    __attribute__((section(".nvFatBinSegment"), used)) = {0x466243b1, 1, fatbin, 0};\n'
        "const void *PyInit__C(void) { return markers; }\n",
        encoding="utf-8",
    )
    made = tmp_path / "_C.so"
    command = [tool("gcc"), "-shared", "-fPIC", "-o", made, "c.c"]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    return made


def in_wheel(folder, path):
    folder.mkdir(exist_ok=True)
    tag = "cp311-cp311-manylinux_2_34_x86_64"
    return w.wheel(folder, {"demo/_C.so": path.read_bytes()}, "demo-cuda", tag=tag)


def test_device_code_survives_a_change_of_the_run_path(module, tmp_path):
    before = in_wheel(tmp_path / "before", module)
    command = [tool("patchelf"), "--set-rpath", "$ORIGIN/" + "long/" * 200, module]
    subprocess.run(command, check=True, capture_output=True)
    report = verify(in_wheel(tmp_path / "after", module), before=before)
    assert failing(report) - {"V11"} == set()
    (check,) = [check for check in report.checks if check.code == "V07"]
    assert "equal to those before repair" in check.detail


def test_device_code_that_a_tool_replaced_is_told(module, tmp_path):
    before = in_wheel(tmp_path / "before", module)
    (tmp_path / "other.bin").write_bytes(w.fatbin("sm_80", "sm_70") * 40)
    command = [tool("objcopy"), f"--update-section=.nv_fatbin={tmp_path / 'other.bin'}", module]
    subprocess.run(command, check=True, capture_output=True)
    assert "V07" in failing(verify(in_wheel(tmp_path / "after", module), before=before))


def test_device_code_that_strip_removed_is_told(module, tmp_path):
    command = [tool("objcopy"), "--remove-section=.nv_fatbin", module]
    subprocess.run(command, check=True, capture_output=True)
    report = verify(in_wheel(tmp_path / "after", module))
    (check,) = [check for check in report.checks if check.code == "V10"]
    assert not check.ok
    assert "kernels are registered" in check.detail


def test_changed_soname_is_told(module, tmp_path):
    before = in_wheel(tmp_path / "before", module)
    subprocess.run([tool("patchelf"), "--set-soname", "other.so", module], check=True)
    report = verify(in_wheel(tmp_path / "after", module), before=before)
    assert "V07" in failing(report)
    assert any("soname" in check.detail for check in report.checks if not check.ok)


def test_nvcc_static_and_dynamic_runtime_are_told_apart(tmp_path):
    """The proof and its control, on what the real compiler links."""
    nvcc = tool("nvcc")
    source = tmp_path / "k.cu"
    source.write_text(
        "__global__ void k(float *p) { p[threadIdx.x] = 1; }\n"
        'extern "C" void *PyInit__C(float *p) { k<<<1, 32>>>(p); return p; }\n',
        encoding="utf-8",
    )
    found = {}
    for runtime in ("static", "shared"):
        made = tmp_path / f"{runtime}.so"
        command = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-cudart", runtime, "-arch=sm_90"]
        done = subprocess.run(
            [*command, "-o", made, source], check=False, capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(f"nvcc cannot build here: {done.stderr.strip()[:200]}")
        subprocess.run([tool("strip"), "--strip-all", made], check=True)
        found[runtime] = verify(Path(made), "cuda")
    assert "V01" not in failing(found["static"])
    assert "V01" in failing(found["shared"])
    for report in found.values():
        (check,) = [check for check in report.checks if check.code == "V10"]
        assert check.detail.startswith("sm_90")
