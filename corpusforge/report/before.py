"""A document as it was before deduplication, with everything that was cut from it marked in place.

Comes in: a deduplicated stage's folder, and its rows of REPEATS for a document. Goes out: rich text. The one decision:
the text before is not kept twice; it is read from the stage that was deduplicated, where that lies beside this one and
still is what it was. Where it does not, that is said, and the rest is shown without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from rich.text import Text

from corpusforge import errors, shards
from corpusforge.report.plain import visible
from corpusforge.shards import Manifest

COLOURS = {"lines": "yellow", "exact-spans": "red", "near-spans": "magenta", "documents": "cyan"}
OTHER = "blue"
"""Of a method that this version does not know."""


class Before(NamedTuple):
    """The text that came to the stage. ``why_not``: one line that says why it is None, else ""."""

    text: str | None
    why_not: str


def text_before(folder: str, manifest: Manifest, document: str) -> Before:
    """The text that came to the stage, where the stage that it came from is still beside it and can be read."""
    if shards.is_remote(folder):
        return Before(None, "the text before is not shown: it is looked for beside folders of this machine only")
    trouble = "no folder beside holds what was deduplicated"
    try:
        for beside, upstream in _beside(folder):
            if upstream.content.get("documents") == manifest.upstream.get("documents"):
                try:
                    text = _text_of(upstream.paths(beside, "documents"), document)
                except (OSError, errors.CorpusForgeError) as error:
                    trouble = " ".join(str(error).split())  # another folder may hold a copy that can be read
                    continue
                if text is not None:
                    return Before(text, "")
    except OSError as error:
        trouble = f"{error.filename}: {error.strerror}"
    return Before(None, f"the text before is not there: {visible(trouble)}")


def _beside(folder: str) -> Iterator[tuple[str, Manifest]]:
    """The finished stages in the folder that this one lies in; what else lies there is passed over."""
    for beside in sorted(Path(folder).resolve().parent.iterdir()):
        try:
            found = Manifest.load(str(beside)) if beside.is_dir() else None
        except (OSError, errors.CorpusForgeError):
            continue
        if found:
            yield str(beside), found


def _text_of(paths: Sequence[str], document: str) -> str | None:
    for path in paths:
        for batch in shards.read_shard(path):
            row = pc.index(batch.column("id"), document).as_py()
            if row >= 0:
                return str(batch.column("text")[row].as_py())
    return None


def marked(text: str, cuts: Sequence[dict[str, Any]]) -> Text:
    """The text, what was cut between marks and in the colour of the method that cut it; ``cuts``: rows of REPEATS.

    Where several took of it, each mark names who did. What went with its page is marked as well.

    >>> row = {"reason": "span:repeated", "method": "exact-spans", "start": 4, "stop": 8}
    >>> page = {"reason": "page:few-words", "method": "exact-spans", "start": 0, "stop": 11}
    >>> marked("One. Two. Three.", [row]).plain, marked("One. Two. Three.", [row, page]).plain
    ('One.[- Two-]. Three.', '[-page:few-words: One.-][-exact-spans:  Two-][-page:few-words: . Three.-]')
    """
    raw = text.encode()
    owner = np.full(len(raw), -1)
    names = list(dict.fromkeys(_name(cut) for cut in cuts))
    methods = {_name(cut): cut["method"] for cut in cuts}
    # A page is what was left behind all cuts, so its marks lie under theirs. Inside a cut may lie what an earlier
    # method had cut: the shorter of two rows is the earlier one, and laid on top.
    for cut in sorted(cuts, key=lambda row: (not _is_page(row), row["start"] - row["stop"])):
        place = slice(None) if _is_page(cut) else slice(cut["start"], cut["stop"])
        owner[place] = names.index(_name(cut))
    edges = np.r_[0, np.flatnonzero(np.diff(owner)) + 1, len(raw)]
    shown = Text()
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        piece = "\n".join(visible(line) for line in raw[first:last].decode(errors="replace").split("\n"))
        name = names[owner[first]] if first < last and owner[first] >= 0 else ""
        label = f"{name}: " if len(names) > 1 else ""
        shown.append(f"[-{label}{piece}-]" if name else piece, COLOURS.get(methods[name], OTHER) if name else "")
    return shown


def _is_page(cut: dict[str, Any]) -> bool:
    return bool(cut["reason"].startswith("page:"))


def _name(cut: dict[str, Any]) -> str:
    return str(cut["reason"] if _is_page(cut) else cut["method"])
