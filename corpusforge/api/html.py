"""Results in a notebook: the funnel and the reasons as small tables with bars. One block of HTML, no scripts."""

from __future__ import annotations

from collections.abc import Sequence

from corpusforge.report.gather import funnel, step_order, steps_of
from corpusforge.report.html import Markup, table, text
from corpusforge.report.plain import number, size
from corpusforge.shards import Manifest

MOST_REASONS = 12
"""Reasons shown, the most frequent first."""


def result_html(folder: str, manifest: Manifest, warnings: Sequence[str] = ()) -> str:
    """The funnel of a stage, what it dropped by reason, and its numbers. ``folder``: "" of a dry run."""
    where = f"<code>{text(folder)}</code>" if folder else "dry run: nothing was written"
    parts = [f"<p><b>{text(manifest.stage)}</b> · {where}</p>"]
    parts += [f'<p style="color:#c00">{text(line)}</p>' for line in warnings]
    steps = [
        (step.name, step.documents, step.text_bytes) for step in steps_of(manifest.statistics, step_order(manifest))
    ]
    if not steps:
        steps = [(step.label, step.documents, step.text_bytes) for step in funnel({manifest.stage: manifest})]
    if steps:
        parts.append(_bars(("", "documents", "text", "of the first"), steps))
    reasons = sorted(manifest.tallies.items(), key=lambda item: (-item[1]["rows"], item[0]))
    dropped = [(reason, row["rows"], row["bytes"]) for reason, row in reasons if reason != "kept"]
    if dropped:
        parts.append(_bars(("dropped because", "rows", "text", "of the largest"), dropped[:MOST_REASONS]))
    if len(dropped) > MOST_REASONS:
        parts.append(f"<p>and {len(dropped) - MOST_REASONS} more in <code>.counts</code></p>")
    if not steps:
        values = [(key, value) for key, value in manifest.statistics.items() if isinstance(value, int | float)]
        parts.append(table(("", "value"), [(key, number(value)) for key, value in values], numbers=(1,)))
    if manifest.shards:
        rows = [(name, f"{manifest.rows.get(name, 0):,}") for name in manifest.shards]
        parts.append(table(("table", "rows"), rows, numbers=(1,)))
    return f'<div class="corpusforge">{"".join(parts)}</div>'


def report_html(path: str) -> str:
    """Where the report of a run is."""
    return f"<p>report: <code>{text(path)}</code></p>"


def _bars(header: Sequence[str], rows: Sequence[tuple[str, int, int]]) -> str:
    """A table of names, counts and bytes, with a bar of the count's share of the first row's."""
    whole = max(rows[0][1], 1)
    cells = [(name, f"{count:,}", size(amount), _bar(count / whole)) for name, count, amount in rows]
    return table(header, cells, numbers=(1, 2))


def _bar(share: float) -> Markup:
    width = round(120 * min(share, 1.0))
    bar = f'<span style="display:inline-block;height:.7em;width:{width}px;background:#4c78a8"></span>'
    return Markup(f"{bar} {100 * share:.1f}%")
