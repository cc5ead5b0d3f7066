"""Clean a batch: apply the steps of a run, one after another.

The order of the steps: URLs, packs as the recipe lists them, language, bad words, then personal data and contamination.
Except for the packs it is that of C4 (tensorflow-datasets 4.9.10, ``text/c4.py``): language and bad words are judged on
text that is already clean. A step sees only the documents that earlier steps kept, with the text that they left. The
result for a document depends on that document alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64
from corpusforge.clean.badwords import BadwordsStep
from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.language import LanguageStep
from corpusforge.clean.pack import Pack
from corpusforge.clean.packs import load_pack, load_rules, step_of
from corpusforge.clean.step import (
    KEPT,
    DroppedLines,
    Edits,
    LineCounts,
    Outcome,
    Step,
    StepLines,
    Verdict,
    rejects_of,
    tallies_of,
)
from corpusforge.clean.urls import UrlLists
from corpusforge.schemas import DOCUMENTS
from corpusforge.sections import Clean, Urls

if TYPE_CHECKING:
    from corpusforge.clean.filters import Filter
    from corpusforge.shards import Tallies


@dataclass(frozen=True)
class Cleaned:
    """The result for a batch.

    ``statistics``: documents_in/out, text_bytes_in/out, lines_in/out (0 if no step reads lines), and under "steps" the
    documents and bytes of text after each step.
    """

    documents: pa.RecordBatch
    tallies: Tallies
    statistics: dict[str, Any]
    outcome: Outcome

    @cached_property
    def rejects(self) -> pa.RecordBatch:
        """Dropped pages and lines, a batch of REJECTS; built on demand."""
        return rejects_of(self.outcome)


@dataclass(frozen=True)
class Cleaner:
    """The steps of a cleaning run, in order. Picklable, as each step is."""

    steps: tuple[Step, ...]

    def check(self) -> None:
        """Raises an error of `errors` if a run cannot succeed."""
        names = [step.name for step in self.steps]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate:  # rejects and counts identify steps by name
            what = f"two steps are called '{duplicate}'"
            raise errors.RecipeInvalid("clean.rules", what, "name a pack once, or rename one")
        for step in self.steps:
            step.check()

    def resources(self) -> list[dict[str, Any]]:
        """What the output depends on besides code and settings, for each step: packs, lists, models, libraries."""
        return [{"step": step.name, **step.resources()} for step in self.steps]

    def clean(self, documents: pa.RecordBatch) -> Cleaned:
        """Apply all steps to a batch of DOCUMENTS."""
        return _Chain(documents).run(self.steps)


class _Chain:
    """A batch on its way through the steps. ``numbers``: of the documents still kept, in the input batch."""

    def __init__(self, documents: pa.RecordBatch) -> None:
        self.given = documents
        self.current = documents
        self.numbers: I64 = np.arange(documents.num_rows)
        self.dropped_by = np.full(documents.num_rows, -1, np.int16)
        self.codes = np.zeros(documents.num_rows, np.int8)
        self.details: dict[int, str] = {}
        self.lines: list[StepLines] = []
        self.edits: list[Edits] = []
        self.lines_in = -1
        self.line_counts: I64 | None = None
        self.after: dict[str, dict[str, int]] = {}

    def run(self, steps: tuple[Step, ...]) -> Cleaned:
        """Apply every step and combine their verdicts."""
        reasons = []
        for number, step in enumerate(steps):
            verdict = step.apply(self.current)
            reasons.append(verdict.reasons)
            self._note(number, verdict)
            self._pass_on(verdict)
            self.after[step.name] = {"documents": self.current.num_rows, "text_bytes": _size(self.current)}
        cleaned = pa.record_batch([self.current[name] for name in DOCUMENTS.names], schema=DOCUMENTS)
        names = tuple(step.name for step in steps)
        outcome = Outcome(
            self.given, names, self.dropped_by, self.codes, tuple(reasons), self.details, *self._of_kept_documents()
        )
        tallies = tallies_of(outcome)
        if cleaned.num_rows:
            tallies["kept"] = {"rows": cleaned.num_rows, "bytes": _size(cleaned)}
        return Cleaned(cleaned, tallies, self._statistics(cleaned), outcome)

    def _note(self, number: int, verdict: Verdict) -> None:
        """Record the verdict of a step, with documents numbered as in the input batch."""
        dropped = np.flatnonzero(verdict.codes != KEPT)
        self.dropped_by[self.numbers[dropped]] = number
        self.codes[self.numbers[dropped]] = verdict.codes[dropped]
        self.details |= {int(self.numbers[n]): detail for n, detail in verdict.details.items()}
        if verdict.lines is not None and len(verdict.lines.codes):
            lines = replace(verdict.lines, documents=self.numbers[verdict.lines.documents])
            self.lines.append(StepLines(number, verdict.line_reasons, lines))
        if verdict.edits is not None and len(verdict.edits.codes):
            self.edits.append(verdict.edits._replace(documents=self.numbers[verdict.edits.documents]))
        if verdict.counts is not None:
            self._count(verdict.counts)

    def _count(self, counts: LineCounts) -> None:
        if self.lines_in < 0:
            self.lines_in = int(counts.before.sum())
            self.line_counts = np.zeros(self.given.num_rows, np.int64)
        assert self.line_counts is not None
        self.line_counts[self.numbers] = counts.after

    def _pass_on(self, verdict: Verdict) -> None:
        """Keep the documents that stay, with their new text and language, for the next step."""
        kept = verdict.codes == KEPT
        changed = {"text": verdict.texts}
        if verdict.language is not None:
            changed["language"] = verdict.language
        columns = {name: changed.get(name, self.current[name]) for name in DOCUMENTS.names}
        if not kept.all():
            mask = pa.array(kept)
            columns = {name: column.filter(mask) for name, column in columns.items()}
            self.numbers = self.numbers[kept]
        self.current = pa.record_batch([columns[name] for name in DOCUMENTS.names], names=DOCUMENTS.names)

    def _of_kept_documents(self) -> tuple[tuple[StepLines, ...], tuple[Edits, ...]]:
        kept = self.dropped_by < 0
        lines = tuple(part._replace(lines=part.lines.choose(kept[part.lines.documents])) for part in self.lines)
        edits = []
        for edit in self.edits:
            rows = kept[edit.documents]
            edits.append(Edits(edit.reasons, edit.documents[rows], edit.codes[rows], edit.sizes[rows]))
        return lines, tuple(edits)

    def _statistics(self, cleaned: pa.RecordBatch) -> dict[str, Any]:
        return {
            "documents_in": self.given.num_rows,
            "documents_out": cleaned.num_rows,
            "text_bytes_in": _size(self.given),
            "text_bytes_out": _size(cleaned),
            "lines_in": max(self.lines_in, 0),
            "lines_out": int(self.line_counts[self.numbers].sum()) if self.line_counts is not None else 0,
            "steps": self.after,
        }


def _size(batch: pa.RecordBatch) -> int:
    return int(pc.sum(pc.binary_length(batch["text"])).as_py() or 0)


def explain(text: str, cleaner: Cleaner) -> tuple[list[tuple[int, str, str | None]], str | None]:
    """Every line of a page as ``(number, stripped line, reason or None)``, and the page's own reason or None.

    If the step that drops the page reads lines (`mark`), the lines are marked too.
    """
    row = {name: [None] for name in DOCUMENTS.names} | {"id": [""], "source": [""], "position": [0], "text": [text]}
    document = pa.record_batch([pa.array(row[f.name], f.type) for f in DOCUMENTS], DOCUMENTS)
    lines = [line.strip() for line in text.splitlines()]
    left = list(range(len(lines)))  # numbers of the lines still kept
    reasons: dict[int, str] = {}
    for step in cleaner.steps:
        verdict = step.apply(document)
        code = int(verdict.codes[0])
        if code != KEPT:
            for place, reason in _marks(step, document["text"][0].as_py()):
                if reason and place < len(left):
                    reasons[left[place]] = reason
            return _explained(lines, reasons), verdict.reasons[code]
        dropped = _numbered(verdict.lines, verdict.line_reasons)
        reasons |= {left[place]: reason for place, reason in dropped.items()}
        left = [number for place, number in enumerate(left) if place not in dropped]
        document = pa.record_batch(
            [*(document[name] for name in DOCUMENTS.names[:-1]), verdict.texts], names=DOCUMENTS.names
        )
    return _explained(lines, reasons), None


def _marks(step: Step, text: str) -> list[tuple[int, str | None]]:
    marks: list[tuple[int, str | None]] = step.mark(text) if hasattr(step, "mark") else []
    return marks


def _numbered(lines: DroppedLines | None, names: tuple[str, ...]) -> dict[int, str]:
    if lines is None:
        return {}
    return {n: names[code] for n, code in zip(lines.numbers.tolist(), lines.codes.tolist(), strict=True)}


def _explained(lines: list[str], reasons: dict[int, str]) -> list[tuple[int, str, str | None]]:
    return [(number, line, reasons.get(number)) for number, line in enumerate(lines)]


def cleaner_of(
    section: Clean,
    *,
    urls: Urls | None = None,
    packs: Sequence[Pack] | None = None,
    filters: Iterable[Callable[..., Any] | Filter] = (),
    last: Sequence[Step] = (),
) -> Cleaner:
    """The cleaner of a recipe's section ``clean``. Raises what `load_pack` raises.

    ``urls``: the section with lists of URLs. ``packs``: used in place of those that the section names. ``filters``: the
    user's own functions or `Filter`s, after the rules and before personal data is looked for. ``last``: steps after all
    others. Without a language no page is dropped for its language, and bad words are those of the language that a
    document came with.

    >>> def long(text): return len(text) > 200
    >>> [step.name for step in cleaner_of(Clean(rules=("gopher",), badwords="off", pii="mask"), filters=[long]).steps]
    ['gopher', 'language', 'long', 'pii']
    """
    packs = [load_pack(name) for name in section.rules] if packs is None else packs
    lists = UrlLists(tuple(urls.allow), tuple(urls.block), tuple(urls.block_substrings)) if urls else UrlLists()
    steps: list[Step] = [] if lists.is_empty else [lists]
    steps += [step_of(pack, section) for pack in packs]
    if section.language:
        steps.append(LanguageStep(section.language, section.detector, section.min_language_probability))
    rules = _badword_rules(packs)
    if section.badwords != "off" and rules.badword_fraction:
        steps.append(BadwordsStep(section.badwords, section.language, rules))
    if filters:
        from corpusforge.clean.filters import FilterStep, as_filters

        steps += [FilterStep(filter, section.filter_errors) for filter in as_filters(filters)]
    if section.pii != "off":
        from corpusforge.clean.pii import PiiStep

        steps.append(PiiStep(section.pii, tuple(section.pii_kinds)))
    if section.contamination:
        from corpusforge.clean.contamination import ContaminationStep

        steps.append(ContaminationStep(tuple(section.contamination), section.contamination_ngram))
    return Cleaner((*steps, *last))


def _badword_rules(packs: Sequence[Pack]) -> Rules:
    """The rules about bad words: those of the first pack of kind c4, else of the default pack."""
    return next((pack for pack in packs if isinstance(pack, Rules)), None) or load_rules("c4-tfds-3.1")
