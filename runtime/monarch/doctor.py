"""What the installed environment is, and whether it can work: `python -m monarch doctor`.

Reads only, except that the GPU module is loaded in a process of its own, so that what goes wrong
there goes wrong there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import monarch
from monarch import _preload
from monarch.errors import GpuError, MonarchError, RuntimeLibraryError
from port import architectures
from port.cli import run
from port.errors import ExitCode, PortError
from port.platform import survey
from port.text import counted

if TYPE_CHECKING:
    from monarch._gpu.device import Device

__all__ = ["Diagnosis", "Problem", "command", "diagnose", "run"]

SCHEMA = 1
CLAIMANTS = ("monarch-cpu", "monarch-cuda", "monarch-rocm", "torchmonarch", "monarch")
PROBE_SECONDS = 120
"""A GPU driver may take long to start; one that takes longer hangs."""

_VERDICTS = {
    ExitCode.CLEAN: "everything can work",
    ExitCode.FINDINGS: "the installation is faulty",
    ExitCode.ENVIRONMENT: "the installation is sound; this machine lacks something",
}
_PROBE = "from monarch.doctor import print_probe; print_probe()"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps this environment from working.

    An `installation` problem is in the installed files; an `environment` problem is something that
    the machine lacks.
    """

    kind: Literal["installation", "environment"]
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found. `problems` is empty where everything can work."""

    python: str
    package: tuple[str, ...]
    distributions: tuple[dict[str, str], ...]
    platform: str | None
    build: dict[str, Any]
    module: str | None
    libraries: tuple[dict[str, str], ...]
    driver: dict[str, str] | None
    devices: tuple[dict[str, Any], ...]
    machine: dict[str, list[str]]
    toolkits: tuple[str, ...]
    checks: tuple[dict[str, Any], ...]
    problems: tuple[Problem, ...] = field(default=())

    @property
    def status(self) -> ExitCode:
        """1 for a fault of the installation, else 5 for something missing here, else 0."""
        kinds = {problem.kind for problem in self.problems}
        if "installation" in kinds:
            return ExitCode.FINDINGS
        return ExitCode.ENVIRONMENT if kinds else ExitCode.CLEAN

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "ok": not self.problems, **asdict(self)}


def diagnose() -> Diagnosis:
    """Look at this environment."""
    build, problems = _build()
    platform = build.get("platform")
    distributions = _distributions()
    here = survey()
    machine = {kind: list(architectures.probe(kind, Path("/"))) for kind in ("cuda", "rocm")}
    gpu = _probe() if platform in {"cuda", "rocm"} else {}
    checks, found = _verified(platform, distributions)
    problems += found
    problems += _gpu_problems(platform, build, gpu, machine)
    return Diagnosis(
        python=sys.executable,
        package=tuple(monarch.__path__),
        distributions=distributions,
        platform=platform,
        build=build,
        module=gpu.get("module") or _native(f"_gpu_{platform}") or _native("_core"),
        libraries=tuple(gpu.get("libraries", ())),
        driver=gpu.get("driver"),
        devices=tuple(gpu.get("devices", ())),
        machine=machine,
        toolkits=tuple(f"{t.kind} {t.version} at {t.root}" for t in here.toolkits),
        checks=checks,
        problems=tuple(problems),
    )


def _build() -> tuple[dict[str, Any], list[Problem]]:
    try:
        facts = monarch.build_info()
    except MonarchError as error:
        return {}, [Problem("installation", str(error), "pip install -e ./")]
    if _native("_core"):
        return facts, []
    own = f"monarch-{facts['platform']}"
    remedy = f"pip install --force-reinstall --no-deps {own}"
    return facts, [Problem("installation", f"{own} lacks its native module monarch._core", remedy)]


def _distributions() -> tuple[dict[str, str], ...]:
    found = []
    for name in CLAIMANTS:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        place = str(distribution.locate_file(""))
        found.append({"name": name, "version": distribution.version, "location": place})
    return tuple(found)


def _native(stem: str) -> str | None:
    """The file of a native module of the package."""
    files = [path for folder in monarch.__path__ for path in Path(folder).glob(f"{stem}.*so")]
    return str(files[0]) if files else None


def _verified(
    platform: str | None, distributions: tuple[dict[str, str], ...]
) -> tuple[tuple[dict[str, Any], ...], list[Problem]]:
    from port.verify import verify  # noqa: PLC0415 - its parsers are not needed to be imported

    own = f"monarch-{platform}"
    if own not in {distribution["name"] for distribution in distributions}:
        return (), []
    try:
        report = verify(own, platform, installed=True)
    except PortError as error:
        problem = Problem("installation", str(error), f"pip install --force-reinstall {own}")
        return (), [problem]
    problems = [
        Problem("installation", f"{check.code} {check.file}: {check.detail}", check.remedy)
        for check in report.checks
        if not check.ok and check.severity == "error"
    ]
    return tuple(check._asdict() for check in report.checks), problems


def _gpu_problems(
    platform: str | None,
    build: dict[str, Any],
    gpu: dict[str, Any],
    machine: dict[str, list[str]],
) -> list[Problem]:
    problems = [
        Problem(fault["kind"], fault["what"], fault["remedy"]) for fault in gpu.get("faults", ())
    ]
    for kind, present in machine.items():
        if present and platform is not None and kind != platform:
            problems.append(
                Problem(
                    "environment",
                    f"this machine has GPUs for {kind} ({', '.join(present)}), and "
                    f"monarch-{platform} does not use them",
                    f"pip uninstall monarch-{platform}, then pip install monarch-{kind}",
                )
            )
        elif present and kind == platform:
            try:
                architectures.check_devices(build["architectures"], present, cross=False)
            except PortError as error:
                problems.append(
                    Problem("installation", str(error), f"install a monarch-{kind} built for it")
                )
    return problems


def _probe() -> dict[str, Any]:
    """What loading the GPU module gives, from a process of its own."""
    command_line = [sys.executable, "-c", _PROBE]
    try:
        done = subprocess.run(
            command_line, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return _fault(f"loading the GPU module took more than {PROBE_SECONDS} s", "reset the GPU")
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return _fault(
            f"loading the GPU module ended with status {done.returncode}: {last}",
            f"run: {sys.executable} -c 'import monarch.gpu; monarch.gpu.devices()'",
        )
    return answer


def _fault(what: str, remedy: str) -> dict[str, Any]:
    return {"faults": [{"kind": "environment", "what": what, "remedy": remedy}]}


def print_probe() -> None:
    """Load the GPU module and print what came of it as JSON: the other side of `_probe`."""
    from monarch._gpu import collectives, device, load  # noqa: PLC0415 - in the probing process alone

    answer: dict[str, Any] = {"faults": [], "libraries": [], "devices": []}

    def missing(error: MonarchError, remedy: str) -> None:
        answer["faults"].append({"kind": "environment", "what": str(error), "remedy": remedy})

    try:
        module = load.native()
    except RuntimeLibraryError as error:
        missing(error, "install the runtime that the message names")
        click.echo(json.dumps(answer))
        return
    except ImportError as error:
        broken = {"kind": "installation", "what": str(error), "remedy": "install it again"}
        answer["faults"].append(broken)
        click.echo(json.dumps(answer))
        return
    answer["module"] = module.__file__
    try:
        path, version = module.driver_info()
        answer["driver"] = {"path": path, "version": str(version)}
        answer["devices"] = [_device(found) for found in device.devices()]
    except GpuError as error:
        missing(error, "install the GPU's driver; without a GPU there is nothing to repair")
    try:
        path, version = collectives.library()
        answer["libraries"].append({"name": "collectives", "path": path, "version": str(version)})
    except GpuError as error:
        answer["libraries"].append({"name": "collectives", "path": "", "version": str(error)})
    for path in _preload.mapped():
        answer["libraries"].append({"name": "HIP runtime", "path": str(path), "version": ""})
    click.echo(json.dumps(answer))


def _device(device: Device) -> dict[str, Any]:
    return {
        "ordinal": device.ordinal,
        "name": device.name,
        "pci_bus_id": device.pci_bus_id,
        "total_memory": device.total_memory,
    }


def _text(diagnosis: Diagnosis) -> str:
    build = diagnosis.build
    listed = ", ".join(f"{d['name']} {d['version']}" for d in diagnosis.distributions)
    runtime = build.get("runtime_version") or "none"
    if build.get("runtime_soname"):
        runtime += f" ({build['runtime_soname']})"
    failed = [check for check in diagnosis.checks if not check["ok"]]
    rows = [
        ("python", diagnosis.python),
        ("package", ", ".join(diagnosis.package)),
        ("distributions", listed or "none: a source tree"),
        ("platform", diagnosis.platform or "unknown: never built"),
        ("GPU runtime", runtime),
        ("built for", ", ".join(build.get("architectures", ())) or "no GPU"),
        ("module", diagnosis.module or "missing"),
        *(
            ("library", f"{found['name']}: {found['path'] or 'none'} {found['version']}".rstrip())
            for found in diagnosis.libraries
        ),
        ("driver", " ".join(diagnosis.driver.values()) if diagnosis.driver else "none"),
        *(("GPU", f"{gpu['ordinal']}: {gpu['name']}") for gpu in diagnosis.devices),
        *(("GPUs in it", f"{k}: {', '.join(v)}") for k, v in diagnosis.machine.items() if v),
        ("toolkits", ", ".join(diagnosis.toolkits) or "none"),
        ("files", f"{counted(len(diagnosis.checks), 'check')}, {len(failed)} failed"),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {value}" for name, value in rows]
    for problem in diagnosis.problems:
        lines += ["", f"{problem.kind}: {problem.what}", f"  to do: {problem.remedy}"]
    return "\n".join([*lines, "", f"verdict: {_VERDICTS[diagnosis.status]}"])


@click.command(name="doctor", short_help="Say what is installed and whether it can work here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """Say what is installed, what it would load and whether it can work here.

    Exit status: 0 everything can work, 1 the installation is faulty, 5 this machine lacks
    something.
    """
    diagnosis = diagnose()
    click.echo(json.dumps(diagnosis.to_json(), indent=2) if as_json else _text(diagnosis))
    return diagnosis.status
