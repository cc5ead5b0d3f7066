"""What a finished command says: a few numbers, where things lie, and alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corpusforge import terminal
from corpusforge.report.funnel import funnel
from corpusforge.report.plain import number, seconds, size, visible, words
from corpusforge.shards import Manifest, Tallies

if TYPE_CHECKING:
    from corpusforge.stages.corpus import Preview
    from corpusforge.stages.stage import Outcome

ALARM_HIGH = 0.9
"""A dry run warns where more than this share of the documents would go (spec of the cleaning peers: 90 %)."""


def show_outcome(outcome: Outcome) -> None:
    """The summary of one stage."""
    manifest = outcome.manifest
    if outcome.skipped:
        terminal.show(f"{manifest.stage}: already done in {outcome.folder}, nothing to do")
        return
    terminal.show(*_tables(manifest))
    memory = f", peak memory {outcome.peak_rss / 2**20:,.0f} MiB" if outcome.peak_rss else ""
    terminal.show(f"{manifest.stage}: {outcome.folder} in {seconds(outcome.seconds)}{memory}")


def _tables(manifest: Manifest) -> list[object]:
    tables: list[object] = []
    if manifest.tallies:
        tables.append(tally_table(manifest.tallies))
    numbers = {k: v for k, v in manifest.statistics.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    if numbers:
        rows = [[words(key), number(value)] for key, value in numbers.items()]
        tables.append(terminal.table(manifest.stage, ["", "value"], rows))
    return tables


def tally_table(tallies: Tallies) -> object:
    """Rows and bytes per reason, most rows first."""
    ordered = sorted(tallies.items(), key=lambda item: (-item[1]["rows"], item[0]))
    rows = [[reason, number(c["rows"]), size(c["bytes"])] for reason, c in ordered]
    return terminal.table("What happened, by reason", ["reason", "rows", "text"], rows)


def show_preview(preview: Preview) -> None:
    """A dry run: the tallies, examples, and an alarm where everything or nothing would go."""
    terminal.show(tally_table(preview.tallies))
    for reason, texts in sorted(preview.examples.items()):
        terminal.show(f"{reason}:", *(f"    {visible(text)}" for text in texts))
    dropped = 1 - preview.kept / preview.documents if preview.documents else 0.0
    before, after = (preview.statistics.get(f"text_bytes_{way}", 0) for way in ("in", "out"))
    cut = 1 - after / before if before else 0.0
    terminal.show(
        f"{preview.documents:,} records read, {preview.kept:,} would be kept ({dropped:.1%} dropped); "
        f"{size(before)} of text, {size(after)} kept ({cut:.1%} dropped)"
    )
    for line in alarms(cut):
        terminal.console.print(line, style="bold red")


def alarms(dropped: float) -> list[str]:
    """What is suspicious about the share of text that would go.

    >>> alarms(0.5)
    []
    """
    if dropped <= 0:
        return ["alarm: nothing would be dropped; are the rules meant for this input?"]
    if dropped > ALARM_HIGH:
        return [f"alarm: {dropped:.0%} would be dropped; look at the reasons above before you run this"]
    return []


def show_plan(plan: dict[str, Any]) -> None:
    """What ``pretrain --dry-run`` found out."""
    rows = [[words(key), value if isinstance(value, str) else number(value)] for key, value in plan.items()]
    terminal.show(terminal.table("Training plan", ["", "value"], rows))


def show_run(outcomes: Sequence[tuple[str, Outcome]], report: str | None) -> None:
    """The whole line: the funnel, the times, where the checkpoint and the report lie."""
    manifests = {name: outcome.manifest for name, outcome in outcomes}
    steps = funnel(manifests)
    if steps:
        rows = [[s.label, number(s.documents), size(s.text_bytes) if s.text_bytes else ""] for s in steps]
        terminal.show(terminal.table("Funnel", ["stage", "documents", "text"], rows))
    times = [
        [
            name,
            "already done" if o.skipped else seconds(o.seconds),
            f"{o.peak_rss / 2**20:,.0f} MiB",
            o.folder,
        ]
        for name, o in outcomes
    ]
    terminal.show(terminal.table("Stages", ["stage", "time", "peak memory", "folder"], times))
    results = manifests["evaluate"].statistics if "evaluate" in manifests else {}
    rows = [[words(key), number(v)] for key, v in results.items() if isinstance(v, int | float)]
    if rows:
        terminal.show(terminal.table("Evaluation", ["", "value"], rows))
    for name, outcome in outcomes:
        if name == "pretrain":
            terminal.show(f"Checkpoint: {outcome.folder}/model")
    if report:
        terminal.show(f"Report:     {report}")
