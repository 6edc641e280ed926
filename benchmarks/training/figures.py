"""The figures of a record as a table and as a plot."""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

GOAL = 0.97
GOAL_AT = "kill every 30 s"


def share(record: dict[str, Any], result: dict[str, Any], what: str = "steps") -> float | None:
    """Useful steps a second, to those of the same peer without faults."""
    for other in record["results"]:
        if other["peer"] == result["peer"] and other["faults"] == "none" and what in other:
            return float(result[what] / result["seconds"] / (other[what] / other["seconds"]))
    return None


def markdown(record: dict[str, Any]) -> str:
    """A line a run."""
    lines = [
        "| faults | | useful steps/s | ÷ without | by ranks | by periods | lost | a fault costs |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for result in sorted(record["results"], key=lambda one: record["faults"].index(one["faults"])):
        head = f"| {result['faults']} | {result['peer']} |"
        if "error" in result:
            lines.append(f"{head} {result['error']} | | | | | |")
            continue
        cells = [f"{result['steps'] / result['seconds']:.2f}"]
        for what in ("steps", "full"):
            found = share(record, result, what)
            cells.append("" if found is None else f"{found:.1%}")
        same = result.get("shares")  # not in records of older releases
        cells.append(f"{median(same):.1%} of {len(same)}" if same else "")
        cost = f"{fmean(result['cost']):.2f} s" if result["cost"] else ""
        lines.append(f"{head} {' | '.join(cells)} | {result['lost']} | {cost} |")
    lines.append("")
    for name, times in record.get("groups", {}).items():  # not in records of older releases
        lines.append(f"{name}: median {median(times):.0f} ms, slowest {max(times):.0f} ms.")
    return "\n".join(lines).rstrip() + "\n"


def plot(record: dict[str, Any], path: Path) -> None:
    """Shares as bars, and steps over time under the fault of the goal."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    peers = list(dict.fromkeys(result["peer"] for result in record["results"]))
    faults = [each for each in record["faults"] if each != "none"]
    figure, (bars, curve) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    width = 0.8 / len(peers)
    for index, peer in enumerate(peers):
        found = {one["faults"]: one for one in record["results"] if one["peer"] == peer}
        for place, fault in enumerate(faults):
            value = share(record, found[fault]) if "steps" in found.get(fault, {}) else None
            at = place + (index - (len(peers) - 1) / 2) * width
            bar = bars.bar(at, value or 0, width, color=f"C{index}", label=peer)
            bars.bar_label(bar, ["none" if value is None else f"{value:.0%}"], fontsize=8)
    bars.axhline(GOAL, color="grey", linewidth=1, linestyle=":")
    bars.set_xticks(range(len(faults)), [name.replace(" every", "\nevery") for name in faults])
    bars.set_ylim(0, 1.3)
    bars.set_title("useful steps/s, to those without faults")
    handles, labels = bars.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    bars.legend(once.values(), once.keys(), loc="upper center", ncols=len(peers))
    shown = GOAL_AT if GOAL_AT in faults else faults[0] if faults else "none"
    for index, peer in enumerate(peers):
        for one in record["results"]:
            if one["peer"] == peer and one["faults"] == shown and "curve" in one:
                curve.plot(*zip(*one["curve"], strict=True), color=f"C{index}", label=peer)
                for at in one["at"]:
                    curve.axvline(at, color="grey", linewidth=0.5, linestyle=":")
    curve.set_title(f"steps that the weights hold: {shown}")
    curve.set_xlabel("seconds")
    curve.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
