"""The workflow files only trigger: whatever they run, a person can type."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
# Moves files between jobs, or speaks to the index; nothing that builds, tests or decides.
CARRIERS = {
    "actions/checkout",
    "actions/upload-artifact",
    "actions/download-artifact",
    "pypa/gh-action-pypi-publish",
}
_WORD = r'(?:[\w-]+|"?\$[A-Z]+"?)'
_COMMAND = re.compile(rf"\./ci/nox -s ({_WORD}(?: {_WORD})*?)(?: -- .*)?")


def jobs(text: str) -> list[tuple[str, dict]]:
    return list(yaml.safe_load(text)["jobs"].items())


def matrix_values(job: dict, key: str) -> list[str]:
    matrix = job["strategy"]["matrix"]
    values = [str(value) for value in matrix.get(key, [])]
    return values + [str(row[key]) for row in matrix.get("include", []) if key in row]


def sessions_run(text: str) -> set[str]:
    """Names of the sessions that a workflow runs; an error for a step that is anything else."""
    found = set()
    for name, job in jobs(text):
        for step in job["steps"]:
            if "uses" in step:
                action, _, commit = step["uses"].partition("@")
                assert action in CARRIERS, f"{name}: {action} does more than carry files"
                assert re.fullmatch(r"[0-9a-f]{40}", commit), f"{name}: {action} is not pinned"
                continue
            command = _COMMAND.fullmatch(step["run"].strip())
            assert command, f"{name}: a step runs {step['run']!r}, which is no ./ci/nox -s …"
            for word in command[1].replace('"', "").split():
                if word.startswith("$"):
                    key = step["env"][word[1:]].removeprefix("${{ matrix.").removesuffix(" }}")
                    found |= {one for value in matrix_values(job, key) for one in value.split()}
                else:
                    found.add(word)
    return found


def sessions_defined() -> set[str]:
    """Session names of noxfile.py: a `name=` of the decorator, else the function's."""
    found = set()
    for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if "nox.session" not in ast.unparse(decorator):
                continue
            named = [
                ast.literal_eval(keyword.value)
                for keyword in getattr(decorator, "keywords", [])
                if keyword.arg == "name"
            ]
            found.add(named[0] if named else node.name)
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_sessions_that_exist_and_nothing_else(path):
    run = sessions_run(path.read_text(encoding="utf-8"))
    assert run
    assert run - sessions_defined() == set()


def test_nvidia_and_amd_runners_cover_two_toolkit_majors_each():
    text = (ROOT / ".github/workflows/gpu.yml").read_text(encoding="utf-8")
    named = dict(jobs(text))
    assert [v.split(".")[0] for v in matrix_values(named["nvidia"], "cuda")] == ["12", "13"]
    assert [v.split(".")[0] for v in matrix_values(named["amd"], "rocm")] == ["6", "7"]
    assert all("gpu-tests" in job["steps"][-1]["run"] for job in named.values())


@pytest.mark.parametrize(
    "step",
    ["run: make", "run: ./ci/nox -s tests && rm -r x", "uses: actions/checkout@v4", "uses: a/b@c"],
)
def test_a_step_that_cannot_be_typed_or_is_not_pinned_is_found(step):
    with pytest.raises(AssertionError):
        sessions_run(f"jobs:\n  one:\n    steps:\n      - {step}\n")
