"""What deduplication did to one document, for a terminal: the text before with its cuts marked, and each cut by itself.

Comes in: a deduplicated stage's folder and its rows of REPEATS for a document. Goes out: rich renderables. The one
decision: marks are characters and colours both, so that a pipe shows what a terminal does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from corpusforge import errors
from corpusforge.report import before, survivors
from corpusforge.report.plain import visible
from corpusforge.report.tables import reason_style
from corpusforge.shards import Manifest

Row = dict[str, Any]


def show_before(folder: str, manifest: Manifest, document: str, cuts: Sequence[Row]) -> list[RenderableType]:
    """The text that came to the stage, and why the page went where it did; nothing for a document that lost nothing."""
    if not cuts:
        return []
    went = [
        Text(f"the page was dropped: {row['reason']}, by {row['method']}", f"bold {reason_style(row['reason'])}")
        for row in cuts
        if row["reason"].startswith("page:")
    ]
    found = before.text_before(folder, manifest, document)
    if found.text is None:
        return [*went, Text(found.why_not, "dim")]
    title = Text("before, with what was cut [-between marks-]:", "bold")
    return [*went, title, before.marked(found.text, cuts)]


def show_cuts(folder: str, manifest: Manifest, cuts: Sequence[Row]) -> list[RenderableType]:
    """Each piece that was cut, where its copy is kept, and what became of that copy."""
    ordered = sorted(cuts, key=lambda row: (row["start"], row["reason"]))
    try:
        trails = survivors.trails(folder, manifest, ordered)
    except (OSError, errors.CorpusForgeError):
        trails = [[] for _ in ordered]  # shards moved away: the rows at hand still say what they say
    shown: list[RenderableType] = []
    for cut, trail in zip(ordered, trails, strict=True):
        kept = survivors.told(cut, trail)
        alike = f", {cut['similarity']:.2f} alike" if cut.get("similarity") is not None else ""
        head = f"{cut['reason']}: bytes {cut['start']} to {cut['stop']}{alike}{', ' * bool(kept)}{kept}"
        shown += [Text(visible(head), f"bold {reason_style(cut['reason'])}"), Text(visible(cut["text"]), "red")]
    return shown
