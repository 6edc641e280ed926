"""A source tree with our own build system and almost no code: it builds in seconds.

The real pyproject.toml, CMake files and `port` are copied; the runtime is one function. A ROCm for
it is a folder whose hipcc notes how it was called and hands the file to the system's compiler; in
a CUDA for it nvcc does the latter.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

BINDINGS = """\
Python_add_library(_core MODULE WITH_SOABI core.cpp)
target_link_libraries(_core PRIVATE monarch_core)
install(TARGETS _core LIBRARY DESTINATION monarch)
if(NOT GPU_PLATFORM STREQUAL "cpu")
  Python_add_library(_gpu_${GPU_PLATFORM} MODULE WITH_SOABI gpu_${GPU_PLATFORM}.cpp)
  target_link_libraries(_gpu_${GPU_PLATFORM} PRIVATE monarch_native)
  install(TARGETS _gpu_${GPU_PLATFORM} LIBRARY DESTINATION monarch)
endif()
"""

MODULE = """\
#include <Python.h>
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "NAME", nullptr, -1, nullptr};
DECLARE
PyMODINIT_FUNC PyInit_NAME() {
  PyObject* module = PyModule_Create(&definition);
  if (module) PyModule_AddIntConstant(module, "VALUE", RESULT);
  return module;
}
"""

KERNEL = """\
extern "C" int PLATFORM_value();
extern "C" int device_value() { return PLATFORM_value(); }
"""
KERNELS = """\
add_library(monarch_native STATIC host.cpp)
monarch_add_kernels(monarch_native SOURCES kernel.cu)
target_link_libraries(monarch_native PUBLIC monarch_gpu_runtime)
"""

HIPCC = """\
#!/bin/sh
case $1 in --version) echo "HIP version: 6.4"; exit 0;; esac
printf '%s\\n' "HIP_PLATFORM=$HIP_PLATFORM" "$@" >> "{log}"
for word do
  shift
  case $word in
    --offload-arch=*|-cuid=*|hip) ;;
    -x) set -- "$@" -x c++ ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec g++ "$@"
"""
NVCC = """\
#!/bin/sh
case $1 in
--list-gpu-arch) printf 'compute_90\\n'; exit 0;;
--version) echo "Cuda compilation tools, release 13.0"; exit 0;;
esac
for word do
  shift
  case $word in
    -ccbin|c++|--expt-*|-gencode=*) ;;
    -Xcompiler=*) set -- "$@" -fPIC ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec g++ -x c++ "$@"
"""


def module(name: str, result: str, declare: str = "") -> str:
    text = MODULE.replace("NAME", name).replace("RESULT", result)
    return text.replace("DECLARE", declare)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def tree(folder: Path) -> Path:
    """A miniature source tree in `folder`."""
    folder.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt", ".gitignore"):
        shutil.copy2(ROOT / name, folder / name)
    for name in ("cmake", "port"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    write(folder / "runtime/core/CMakeLists.txt", "add_library(monarch_core STATIC core.cpp)\n")
    write(folder / "runtime/core/core.cpp", "int core_value() { return 41; }\n")
    write(folder / "runtime/bindings/CMakeLists.txt", BINDINGS)
    core = module("_core", "core_value() + 1", "int core_value();")
    write(folder / "runtime/bindings/core.cpp", core)
    for platform in ("cuda", "rocm"):
        gpu = module(f"_gpu_{platform}", "device_value()", 'extern "C" int device_value();')
        write(folder / f"runtime/bindings/gpu_{platform}.cpp", gpu)
    write(folder / "runtime/monarch/__init__.py", "")
    write(folder / "runtime/monarch/py.typed", "")
    for part in ("cuda", "hip"):
        write(folder / f"native/{part}/CMakeLists.txt", KERNELS)
        write(folder / f"native/{part}/host.cpp", "int host_value() { return 1; }\n")
        write(folder / f"native/{part}/kernel.cu", KERNEL.replace("PLATFORM", part))
    return folder


def cuda(home: Path) -> Path:
    """A CUDA in `home`."""
    write(home / "include/cuda.h", "#define CUDA_VERSION 13000\n")
    write(home / "include/cuda_runtime_api.h", "#define CUDART_VERSION 13000\n")
    write(home / "bin/nvcc", NVCC).chmod(0o755)
    source = write(home / "runtime.cpp", 'extern "C" int cuda_value() { return 7; }\n')
    made = home / "lib64/libcudart_static.a"
    made.parent.mkdir()
    subprocess.run(["g++", "-c", "-fPIC", str(source), "-o", str(home / "runtime.o")], check=True)
    subprocess.run(["ar", "rcs", str(made), str(home / "runtime.o")], check=True)
    return home


def rocm(home: Path, major: int = 6) -> Path:
    """A ROCm in `home`; its hipcc writes its arguments to `home`/calls, one a line."""
    write(
        home / "include/hip/hip_version.h",
        f"#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR 4\n"
        "#define HIP_VERSION_PATCH 7\n",
    )
    write(home / "include/hip/hip_runtime_api.h", "")
    hipcc = write(home / "bin/hipcc", HIPCC.format(log=home / "calls"))
    hipcc.chmod(0o755)
    source = write(home / "runtime.cpp", 'extern "C" int hip_value() { return 7; }\n')
    library = home / f"lib/libamdhip64.so.{major}"
    library.parent.mkdir()
    soname = f"-Wl,-soname,{library.name}"
    command = ["g++", "-shared", "-fPIC", soname, str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    (home / "lib/libamdhip64.so").symlink_to(library.name)
    return home


def environment(platform: str | None, **more: str) -> dict[str, str]:
    """The environment of a build: nothing of this one's GPU settings."""
    unwanted = ("GPU_", "ROCM", "HIP", "CUDA", "CMAKE_", "SKBUILD")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    # The miniature's own port, never the checkout's, is what builds it.
    kept.pop("PYTHONPATH", None)
    scripts = str(Path(sys.executable).parent)
    kept["PATH"] = f"{scripts}:{kept['PATH']}"
    return {**kept, **({"GPU_PLATFORM": platform} if platform else {}), **more}


def build(
    source: Path, output: Path, environ: dict[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    """Run the standard build frontend; `options` are --wheel or --sdist."""
    command = [sys.executable, "-m", "build", "--no-isolation", *(options or ("--wheel",))]
    return subprocess.run(
        [*command, "--outdir", str(output), str(source)],
        cwd=output.parent,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def environment_of_its_own(place: Path) -> Path:
    """The interpreter of a new environment, which sees what the one of this process has."""
    venv.create(place, with_pip=False)
    (target,) = place.glob("lib/python*/site-packages")
    here = "\n".join(site.getsitepackages())
    (target / "here.pth").write_text(f"{here}\n", encoding="utf-8")
    return place / "bin/python"


def pip(
    tree: Path, environ: dict[str, str], command: str, *more: str, python: Path | None = None
) -> None:
    """pip in the folder of `tree`, with nothing from an index, for the environment of `python`."""
    target = [] if python is None else [f"--python={python}"]
    offline = ["-q", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *target, command, *offline, *more],
        cwd=tree,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def ask(python: Path, code: str, cwd: Path, **environ: str) -> object:
    """What an expression is in another interpreter, by way of JSON."""
    done = subprocess.run(
        [str(python), "-c", f"import json; print(json.dumps({code}))"],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
