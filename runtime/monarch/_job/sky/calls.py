"""The calls of SkyPilot's client, in a process of their own: `import sky` takes seconds.

A line of JSON in, `{"call": name, …}`, is one of JSON out: `{"gave": value}`, or `{"error": text}`
with "away" where SkyPilot's server could not be reached. What SkyPilot prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from typing import Any

_ENDED = {"FAILED", "CANCELLED"}
_AWAY = {"ApiServerConnectionError", "ServerTemporarilyUnavailableError"}  # of SkyPilot's


class Calls:
    """What can be called; `sky` is the package of that name."""

    def __init__(self, sky: Any) -> None:
        self._sky = sky

    def launch(self, path: str, cluster: str, idle_minutes: int | None, down: bool) -> str:
        """Ask for a cluster that runs the task in a file; the id of the request."""
        task = self._sky.Task.from_yaml(path)
        return str(
            self._sky.launch(
                task, cluster_name=cluster, idle_minutes_to_autostop=idle_minutes, down=down
            )
        )

    def requests(self, ids: list[str]) -> dict[str, dict[str, str]]:
        """How these requests stand: `state`, what they do now (`said`), why they failed."""
        found = {}
        for one in self._sky.api_status(request_ids=ids):
            told = {"state": one.status, "said": one.status_msg or "", "error": ""}
            if one.status in _ENDED:
                told["error"] = self._why(one.request_id)
            found[one.request_id] = told
        return found

    def _why(self, request: str) -> str:
        try:
            self._sky.get(request)
        except Exception as error:  # noqa: BLE001 - of any kind, carried over from the server
            return f"{type(error).__name__}: {error}"
        return "it was cancelled"

    def clusters(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """Those of these clusters that there are: `status`, and the addresses of their nodes."""
        found = {}
        for one in self._sky.get(self._sky.status(cluster_names=names)):
            pairs = getattr(one.handle, "stable_internal_external_ips", None) or []
            told = getattr(one, "init_status_reason", None) or ""
            ips = [list(pair) for pair in pairs]
            found[one.name] = {"status": one.status.name, "ips": ips, "why": told}
        return found

    def programs(self, names: list[str]) -> dict[str, str]:
        """How the first program of each cluster stands; empty where that cannot be said."""
        asked = {name: self._sky.queue(name) for name in names}
        found = {}
        for name, request in asked.items():
            found[name] = ""
            with contextlib.suppress(Exception):  # a cluster that is not up; `clusters` says so
                jobs = sorted(self._sky.get(request), key=lambda one: int(one.job_id))
                found[name] = str(jobs[0].status.name) if jobs else ""
        return found

    def tail(self, cluster: str, lines: int) -> str:
        """The last lines that the first program of a cluster printed."""
        text = io.StringIO()
        with contextlib.suppress(Exception):
            self._sky.tail_logs(cluster, 1, follow=False, tail=lines, output_stream=text)
        return text.getvalue()

    def down(self, names: list[str], requests: list[str]) -> dict[str, str]:
        """End these clusters, and requests for them; those that may still be there, with why."""
        if requests:
            with contextlib.suppress(Exception):  # they have ended
                self._sky.get(self._sky.api_cancel(requests, silent=True))
        left: dict[str, str] = {}
        asked: dict[str, Any] = {}
        for name in names:
            try:
                asked[name] = self._sky.down(name)
            except Exception as error:  # noqa: BLE001 - the others are to be ended all the same
                _note(left, name, error)
        for name, request in asked.items():
            try:
                self._sky.get(request)
            except Exception as error:  # noqa: BLE001 - as above
                _note(left, name, error)
        return left


def _note(left: dict[str, str], name: str, error: Exception) -> None:
    """Note that a cluster may still be there; one that SkyPilot does not know is not."""
    if type(error).__name__ != "ClusterDoesNotExist":
        left[name] = f"{type(error).__name__}: {error}"


def main() -> None:
    """Answer until there is no more input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        import sky  # noqa: PLC0415 - an extra, and slow
    except ImportError as error:
        print(json.dumps({"error": f"ImportError: {error}"}), file=answers, flush=True)
        return
    calls = Calls(sky)
    print(json.dumps({"gave": getattr(sky, "__version__", "")}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"gave": getattr(calls, asked.pop("call"))(**asked)}
        except Exception as error:  # noqa: BLE001 - who asked gets it
            away = isinstance(error, OSError) or type(error).__name__ in _AWAY
            answer = {"error": f"{type(error).__name__}: {error}", "away": away}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
