"""The table as Markdown, and the plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.catalogue import OURS, PEERS

if TYPE_CHECKING:
    from pathlib import Path

    from harness.targets import Figures


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.4f}"


def _goal(figures: Figures) -> str:
    if figures.goal is None:
        return ""
    sign = "≤" if figures.row.less else "≥"
    return f"{sign} {figures.goal:.3g}"


def _verdict(figures: Figures) -> str:
    reached = figures.reached()
    if reached is None or figures.goal is None:
        return ""
    if reached:
        return "met"
    ours = figures.peers[OURS]
    apart = ours / figures.goal if figures.row.less else figures.goal / max(ours, 1e-12)
    return f"missed ({number(apart)} x)"


def _cell(figures: Figures, peer: str) -> str:
    if peer not in figures.peers:
        return ""
    times = figures.times_worse(peer)
    value = number(figures.peers[peer])
    return value if times is None else f"{value} ({number(times)} x)"


def _ours(figures: Figures) -> str:
    if OURS not in figures.peers:
        return ""
    low, high = (number(value) for value in figures.spread[OURS])
    text = number(figures.peers[OURS])
    return text if low == high else f"{text} ({low} to {high})"


def markdown(rows: list[Figures]) -> str:
    """A line a row: goal, ours with its spread, whether met; peers, and how far behind they are."""
    present = {name for figures in rows for name in figures.peers}
    peers = [entry.name for entry in PEERS if entry.name != OURS and entry.name in present]
    head = ["", "unit", "goal", OURS, "", *peers, "limit"]
    lines = [head, ["---"] * len(head)]
    for figures in rows:
        limit = "" if figures.limit is None else number(figures.limit)
        line = [figures.row.label, figures.row.unit, _goal(figures), _ours(figures)]
        line += [_verdict(figures), *(_cell(figures, peer) for peer in peers), limit]
        lines.append(line)
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def plot(rows: list[Figures], path: Path) -> None:
    """A dot a peer and row: how many times the goal it needs, on a logarithmic scale."""
    import matplotlib as mpl  # noqa: PLC0415 - slow, and not needed for the table

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    shown = [figures for figures in rows if figures.goal]
    names = [entry.name for entry in PEERS if any(entry.name in f.peers for f in shown)]
    figure, axes = plt.subplots(figsize=(10, 0.32 * len(shown) + 1.6))
    for name in names:
        points = [(_apart(figures, name), -at) for at, figures in enumerate(shown)]
        known = [(apart, at) for apart, at in points if apart is not None]
        size, above = (70, 3) if name == OURS else (28, 2)
        axes.scatter(*zip(*known, strict=True), s=size, label=name, zorder=above)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks([-at for at in range(len(shown))])
    axes.set_yticklabels([f"{f.row.label} ({_goal(f)} {f.row.unit})" for f in shown])
    axes.set_xlabel("times the goal (left of the line: met)")
    axes.grid(axis="both", alpha=0.3)
    axes.legend(loc="best", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _apart(figures: Figures, name: str) -> float | None:
    if figures.goal is None or name not in figures.peers:
        return None
    value = max(figures.peers[name], figures.goal * 1e-3)
    return value / figures.goal if figures.row.less else figures.goal / value
