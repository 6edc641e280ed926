"""What SkyPilot is asked for: the task of a host, as the YAML that its own commands take. Pure."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULE = "monarch._job.sky.host"
_BARE = re.compile(r"[A-Za-z_~/][\w./~ -]*(?<! )")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})  # of YAML


def secret_path(cluster: str) -> str:
    """Where a cluster's nodes find the secret."""
    return f"~/.monarch/{cluster}/secret"


def task(
    cluster: str,
    nodes: int,
    *,
    python: str,
    port: int,
    lease: int,
    secret: str,
    resources: Mapping[str, Any] | None = None,
    setup: str | None = None,
    workdir: str | None = None,
    file_mounts: Mapping[str, str] | None = None,
    envs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The task whose `nodes` are each a host.

    `secret` is the file here with the cluster's secret, which a file mount brings to the nodes:
    neither the task nor a command has it. A host ends after `lease` seconds without a program.
    """
    mounted = secret_path(cluster)
    words = ["exec", python, "-m", MODULE, mounted, str(port), cluster, str(lease)]
    # The shell there knows its home, and python_exe may name it.
    run = " ".join(word if word.startswith("~/") else shlex.quote(word) for word in words)
    found: dict[str, Any] = {
        "name": "monarch",
        "num_nodes": nodes,
        "resources": dict(resources or {}),
        "envs": dict(envs or {}),
        "workdir": workdir,
        "file_mounts": {**(file_mounts or {}), mounted: secret},
        "setup": setup,
        "run": f"chmod 600 {mounted}\n{run}\n",
    }
    return {name: value for name, value in found.items() if value not in (None, {}, "")}


def yaml(document: Mapping[str, Any]) -> str:
    """A document of mappings, lists and scalars as YAML; text of several lines as a block."""
    return "".join(_lines(document, ""))


def _lines(value: Mapping[str, Any], indent: str) -> list[str]:
    found = []
    for name, item in value.items():
        key = f"{indent}{_scalar(str(name))}:"
        if isinstance(item, dict) and item:
            found += [f"{key}\n", *_lines(item, f"{indent}  ")]
        elif isinstance(item, str) and _is_block(item):
            body = "".join(f"{indent}  {line}" for line in item.splitlines(keepends=True))
            found.append(f"{key} |\n{body}")
        else:
            found.append(f"{key} {_scalar(item)}\n")
    return found


def _is_block(text: str) -> bool:
    """Whether a literal block says just this: lines that all end, and none that could confuse."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and not lines[-1]
        and bool(lines[0].strip())
        and bool(lines[-2])
        and not text[0].isspace()
        and all(line.isprintable() for line in lines)
    )


def _scalar(value: Any) -> str:
    """One value in the flow style, which is that of JSON where it is no plain word."""
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS:
        return "'~'" if value == "~" else value
    return json.dumps(value, ensure_ascii=False, default=str)
