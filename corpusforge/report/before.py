"""A document as it was before deduplication, with everything that was cut from it marked in place.

Comes in: a deduplicated stage's folder, and its rows of REPEATS for a document. Goes out: rich text. The one decision:
the text before is not kept twice; it is read from the stage that was deduplicated, where that lies beside this one and
still is what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from rich.text import Text

from corpusforge import errors, shards
from corpusforge.report.plain import visible
from corpusforge.shards import Manifest

COLOURS = {"lines": "yellow", "exact-spans": "red", "near-spans": "magenta", "documents": "cyan"}


def text_before(folder: str, manifest: Manifest, document: str) -> str | None:
    """The text that came to the stage; None where the stage that it came from is not beside it any more."""
    if shards.is_remote(folder):
        return None
    for beside in sorted(Path(folder).resolve().parent.iterdir()):
        try:
            upstream = Manifest.load(str(beside)) if beside.is_dir() else None
        except errors.ManifestInvalid:
            continue
        if upstream and upstream.content.get("documents") == manifest.upstream.get("documents"):
            return _text_of(upstream.paths(str(beside), "documents"), document)
    return None


def _text_of(paths: Sequence[str], document: str) -> str | None:
    for path in paths:
        for batch in shards.read_shard(path):
            row = pc.index(batch.column("id"), document).as_py()
            if row >= 0:
                return str(batch.column("text")[row].as_py())
    return None


def marked(text: str, cuts: Sequence[dict[str, Any]]) -> Text:
    """The text, what was cut in the colour of the method that cut it; ``cuts``: rows of REPEATS.

    >>> row = {"reason": "span:repeated", "method": "exact-spans", "start": 4, "stop": 8}
    >>> marked("One. Two. Three.", [row]).markup
    'One.[red] Two[/red]. Three.'
    """
    raw = text.encode()
    methods = list(COLOURS)
    owner = np.full(len(raw), -1)
    # Inside a cut may lie what an earlier method had cut: the shorter of two rows is the earlier one.
    for cut in sorted(cuts, key=lambda row: row["start"] - row["stop"]):  # so the longest are laid first
        if not cut["reason"].startswith("page:"):
            owner[cut["start"] : cut["stop"]] = methods.index(cut["method"])
    edges = np.r_[0, np.flatnonzero(np.diff(owner)) + 1, len(raw)]
    shown = Text()
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        piece = raw[first:last].decode(errors="replace")
        style = COLOURS[methods[owner[first]]] if first < last and owner[first] >= 0 else ""
        shown.append("\n".join(visible(line) for line in piece.split("\n")), style)
    return shown
