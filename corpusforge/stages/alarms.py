"""What a stage's counts say against it: all or nothing dropped, the wrong language, nothing that could be read.

Comes in: statistics, tallies, rejects. Goes out: lines for a person, or an error. The one decision: an alarm never ends
a run, as the rules may be meant so; an input of which no record could be read is an error, once all is written that
tells why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors, shards
from corpusforge.report.funnel import CleaningStep
from corpusforge.shards import Manifest, Tallies

if TYPE_CHECKING:
    from corpusforge.documents.plan import Piece, Unit

MEGABYTE = 1 << 20
WORTH = 4 * MEGABYTE
"""Input a worker below which a second one brings nothing (own measurement: starting two takes 2.4 s, in which one
cleans 3.7 MB of JSONL three times over)."""

ALARM_HIGH = 0.9
"""More dropped than this, of the documents or of the text, is worth a warning (spec of the cleaning peers: 90 %)."""

LANGUAGE = "page:language"
LANGUAGE_ROWS = 10_000
"""Pages in another language that are looked at to tell which it is: enough to tell, and read in a second."""


def dropped(statistics: Mapping[str, Any], what: str) -> float:
    """Share of the documents or of the text that went.

    >>> dropped({"documents_in": 4, "documents_out": 1}, "documents")
    0.75
    """
    before = statistics.get(f"{what}_in", 0)
    return 1 - statistics.get(f"{what}_out", 0) / before if before else 0.0


def of_shares(documents: float, text: float, *, nothing: bool = True) -> list[str]:
    """What is suspicious about the shares of documents and of text that went. ``nothing``: whether none at all is.

    >>> of_shares(0.5, 0.6), of_shares(0.0, 0.1), len(of_shares(0.0, 0.0)), len(of_shares(0.95, 0.6))
    ([], [], 1, 1)
    """
    if nothing and max(documents, text) <= 0:
        return ["alarm: nothing is dropped; are the rules meant for this input?"]
    if max(documents, text) > ALARM_HIGH:
        return [f"alarm: {documents:.0%} of documents and {text:.0%} of text are dropped; look at the reasons above"]
    return []


def of_steps(steps: Sequence[CleaningStep], language: str, languages: Mapping[str, int]) -> list[str]:
    """Steps that drop nearly all that comes to them. ``languages``: as `count_languages` has them."""
    lines = []
    for step in steps:
        if step.dropped > ALARM_HIGH:
            said = f"alarm: {step.name} drops {step.dropped:.0%} of the documents that come to it"
            lines.append(said + (_of_language(language, languages) if step.name == "language" else ""))
    return lines


def _of_language(wanted: str, languages: Mapping[str, int]) -> str:
    """What the pages are in that were not in the language wanted, and the flag to change.

    >>> _of_language("en", {"zh": 9, "ja": 1})
    '; most often they are zh (9 of 10): --language zh keeps these'
    """
    if not languages:
        return ""
    best = max(languages, key=lambda name: (languages[name], name))
    often = f"; most often they are {best} ({languages[best]:,} of {sum(languages.values()):,})"
    if best == wanted.split("-")[0]:
        return f"{often}, but not surely enough: look at --min-language-probability"
    return f"{often}: --language {best} keeps these"


def count_languages(rejects: pa.RecordBatch) -> Counter[str]:
    """Languages named in the details of a REJECTS batch, without their regions: ``"zh-cn 0.99"`` is zh."""
    said = rejects["detail"].filter(pc.equal(rejects["reason"].cast(pa.string()), LANGUAGE))
    names = pc.struct_field(pc.extract_regex(said, "^(?P<name>[a-z]+)[-a-z]* [0-9.]+$"), "name").drop_null()
    return Counter({row["values"]: row["counts"] for row in pc.value_counts(names).to_pylist()})


def languages_of(folder: str, manifest: Manifest) -> Counter[str]:
    """The same of the first `LANGUAGE_ROWS` such pages in the rejects of a finished folder; none where not kept."""
    found: Counter[str] = Counter()
    for path in manifest.paths(folder, "rejects"):
        for batch in shards.read_shard(path):
            found += count_languages(batch)
            if found.total() >= LANGUAGE_ROWS:
                return found
    return found


def of_units(units: Sequence[Unit], workers: int) -> str:
    """A line where the input is cut into fewer units than there are workers, and smaller units would help; else "".

    Not below `WORTH` bytes a worker: that is done before a second process has started.
    """
    pieces = [piece for unit in units for piece in unit.pieces]
    size = sum(piece.size for piece in pieces) // max(workers, 1)
    if len(units) >= workers or size < WORTH:
        return ""
    cut = size // MEGABYTE * MEGABYTE
    whole = [piece for piece in pieces if piece.format != "parquet" and not _is_plain_jsonl(piece)]
    most = len(whole) + sum(-(-piece.size // cut) for piece in pieces if piece not in whole)
    if most <= len(units):
        return ""
    made = f"the input makes {len(units)} work unit{'s' if len(units) > 1 else ''} for {workers} workers"
    return f"{made}; to use more of them: --set input.unit_megabytes={cut // MEGABYTE}"


def _is_plain_jsonl(piece: Piece) -> bool:
    return piece.format == "jsonl" and not piece.path.endswith((".gz", ".zst", ".bz2", ".xz"))


def check_read(paths: Sequence[str], statistics: Mapping[str, Any], tallies: Tallies, *, rejects: str = "") -> None:
    """Raise `errors.InputUnreadable` where not one document was read. ``rejects``: the folder that holds the records.

    >>> check_read(["a.jsonl"], {"records_in": 7, "documents_in": 0}, {"record:bad-json": {"rows": 7, "bytes": 9}})
    Traceback (most recent call last):
        ...
    corpusforge.errors.InputUnreadable: a.jsonl: no document could be read (7 record:bad-json); check the files and --format
    """  # noqa: E501
    if statistics.get("documents_in"):
        return
    where = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    if not statistics.get("records_in"):
        raise errors.InputUnreadable(where, "no document in the input", "name files that hold records")
    most = sorted(tallies.items(), key=lambda item: (-item[1]["rows"], item[0]))
    why = ", ".join(f"{counts['rows']:,} {reason}" for reason, counts in most[:3])
    look = f"look at them in {rejects}, and " if rejects else ""
    raise errors.InputUnreadable(where, f"no document could be read ({why})", f"{look}check the files and --format")
