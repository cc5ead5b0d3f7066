"""Results in a notebook: the funnel, the reasons and the numbers as small tables. One block of HTML, no scripts.

Style is inline, and colors are readable on white and on black. Notebooks align cells to the right, and sites that show
notebooks remove style: so cells have their alignment twice, and bars are characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from corpusforge.report.figures import BLUE, RED
from corpusforge.report.html import Markup, text
from corpusforge.report.plain import number, size, words
from corpusforge.shards import Manifest
from corpusforge.stages.summary import planned

MOST_REASONS = 12
"""Reasons shown, the most frequent first."""

TEMPORARY = "temporary"
"""Instead of a folder whose name is of no use, since it is removed with the result."""

BAR = 12
"""Characters of a whole bar."""


def result_html(
    folder: str, manifest: Manifest, funnel: Sequence[Mapping[str, Any]], warnings: Sequence[str] = ()
) -> str:
    """Funnel of a stage, what it dropped by reason, its numbers. ``folder``: "" of a dry run; or `TEMPORARY`."""
    where = f"<code>{text(folder)}</code>" if folder else "dry run: nothing was written"
    where = "in a temporary folder, removed with the result" if folder == TEMPORARY else where
    parts = [f"<p><b>{text(manifest.stage)}</b> · {where}</p>"]
    parts += [f'<p style="color:{RED}">{text(line)}</p>' for line in warnings]
    if funnel:
        steps = [(step["step"], step["documents"], step["bytes"]) for step in funnel]
        parts.append(_bars(("step", "documents left", "text left", "share"), steps, steps[0][1]))
    reasons = sorted(manifest.tallies.items(), key=lambda item: (-item[1]["rows"], item[0]))
    dropped = [(reason, row["rows"], row["bytes"]) for reason, row in reasons if reason != "kept"]
    if dropped:
        header = ("dropped because", "rows", "text", "share of rows")
        parts.append(_bars(header, dropped[:MOST_REASONS], sum(rows for _, rows, _ in dropped)))
    if len(dropped) > MOST_REASONS:
        parts.append(f"<p>and {len(dropped) - MOST_REASONS} more in <code>.counts</code></p>")
    if not funnel:
        parts += _numbers(manifest.statistics)
    if manifest.shards:
        names = sorted(manifest.shards, key="heldout".__eq__)
        parts.append(_table(("table", "rows"), [(name, f"{manifest.rows.get(name, 0):,}") for name in names]))
    return _block(*parts)


def plan_html(plan: Mapping[str, Any]) -> str:
    """What a training would cost, and where it differs from its preset as published."""
    rows = [planned(key, value) for key, value in plan.items() if not key.startswith("differs_")]
    parts = ["<p><b>pretrain</b> · dry run: nothing was trained</p>", _table(("plan", "value"), rows)]
    differs = "".join(f"<li>{text(value)}</li>" for key, value in plan.items() if key.startswith("differs_"))
    if differs:
        parts.append(f"<p>Differs from {text(plan['preset'])} as published:</p><ul>{differs}</ul>")
    return _block(*parts)


def _block(*parts: str) -> str:
    return f'<div class="corpusforge" style="overflow-x:auto">{"".join(parts)}</div>'


def report_html(path: str) -> str:
    """Where the report of a run is."""
    return f"<p>report: <code>{text(path)}</code></p>"


def _numbers(statistics: Mapping[str, Any]) -> list[str]:
    """A table of the numbers of a stage, and one of those of its parts, as train and heldout, side by side."""

    def is_number(value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    values = [(words(key), number(value)) for key, value in statistics.items() if is_number(value)]
    tables = [_table(("", "value"), values)] if values else []
    parts = {key: statistics[key] for key in ("train", "heldout") if isinstance(statistics.get(key), dict)}
    columns = [
        {key: part[key] for key in ("documents", "instances", "tokens")} | part.get("ratios", {})
        for part in parts.values()
    ]
    keys = dict.fromkeys(key for column in columns for key in column)
    rows = [(words(key), *(number(column[key]) if key in column else "" for column in columns)) for key in keys]
    return tables + ([_table(("", *parts), rows)] if parts else [])


def _bars(header: Sequence[str], rows: Sequence[tuple[str, int, int]], whole: int) -> str:
    """A table of names, counts and bytes, with each count's share of the whole as a bar and in percent."""
    cells = [
        (name, f"{count:,}", size(amount), f"{count / max(whole, 1):.1%}", _bar(count / max(whole, 1)))
        for name, count, amount in rows
    ]
    return _table((*header, ""), cells)


def _bar(share: float) -> Markup:
    """A bar of characters, to an eighth of one; something that is not zero has a bar.

    >>> _bar(0.53)[-16:]
    '">██████▍</span>'
    """
    whole, eighths = divmod(max(round(8 * BAR * min(share, 1.0)), share > 0), 8)
    bar = "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths]
    return Markup(f'<span style="color:{BLUE};letter-spacing:0" aria-hidden="true">{bar}</span>')


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of escaped cells: names on the left, then numbers, flush right, and bars."""

    def cells(tag: str, row: Sequence[str]) -> str:
        side = ["left" if at == 0 or isinstance(value, Markup) else "right" for at, value in enumerate(row)]
        return "".join(
            f'<{tag} align="{at}" style="text-align:{at};white-space:nowrap;padding:.15em .8em">'
            f"{value if isinstance(value, Markup) else text(value)}</{tag}>"
            for at, value in zip(side, row, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    style = "border-collapse:collapse;margin:.5em 0"
    return f'<table style="{style}"><thead><tr>{cells("th", header)}</tr></thead><tbody>{body}</tbody></table>'
