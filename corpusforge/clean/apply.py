"""Cleaning a batch: lines, pages, language, bad words, in the order of C4.

Comes in: a batch of DOCUMENTS. Goes out: `Cleaned`: the documents that stay, with their text cleaned and their
language set; what was dropped and why; tallies and counts. What becomes of a document depends on that document alone.
The order is that of tensorflow-datasets 4.9.10, ``text/c4.py``, without its line deduplication.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.clean import lines as line_rules
from corpusforge.clean import pages as page_rules
from corpusforge.clean.badwords import Badwords, load_badwords
from corpusforge.clean.language import check_language, guess_languages, is_language
from corpusforge.clean.lines import judge_lines
from corpusforge.clean.pages import join_lines, judge_pages, too_long
from corpusforge.clean.rejects import Outcome, Tallies, rejects_of, tallies_of
from corpusforge.clean.rules import Rules
from corpusforge.clean.sentences import SentenceCounter
from corpusforge.schemas import DOCUMENTS
from corpusforge.text import I64


@dataclass(frozen=True)
class Cleaned:
    """One batch, cleaned. ``statistics``: documents_in/out, text_bytes_in/out, lines_in/out."""

    documents: pa.RecordBatch
    tallies: Tallies
    statistics: dict[str, Any]
    outcome: Outcome

    @cached_property
    def rejects(self) -> pa.RecordBatch:
        """Dropped pages and lines, a batch of REJECTS; made when asked for."""
        return rejects_of(self.outcome)


class _Survivors(NamedTuple):
    """Documents still in: their numbers, and their text as it is now."""

    numbers: I64
    texts: pa.StringArray

    def keep(self, mask: Any) -> _Survivors:
        kept = np.asarray(mask, bool)
        return self if kept.all() else _Survivors(self.numbers[kept], self.texts.filter(pa.array(kept)))


@dataclass(frozen=True)
class Cleaner:
    """The rules and resources of a cleaning run. Picklable: resources are loaded where they are used.

    ``language``: "" looks at no language, and then bad words are those of the language a document came with.
    ``detector``: "langdetect" or "fast"; ``sentences``: "punkt" or "builtin"; ``badwords``: "fetched", "off", a folder.
    """

    rules: Rules
    language: str = "en"
    detector: str = "langdetect"
    min_language_probability: float = 0.99
    sentences: str = "punkt"
    badwords: str = "fetched"

    def check(self) -> None:
        """Raises `errors.ResourceMissing` or `errors.RecipeInvalid` where a run could not succeed."""
        if self.rules.min_sentences:
            self._counter.check()
        if self.language:
            check_language(self.language, self.detector)
            self._list_of(self.language)

    def resources(self) -> dict[str, str]:
        """What the output depends on besides rules and settings: word list, model, libraries that decide."""
        found = {}
        if self.language:
            library = "langdetect" if self.detector == "langdetect" else "resiliparse"
            found["detector"] = f"{library} {version(library)}"
            words = self._list_of(self.language)
            found["badwords"] = words.digest() if words else "off"
        if self.rules.min_sentences:
            found["sentences"] = self._counter.identity()
        return found

    def clean(self, documents: pa.RecordBatch) -> Cleaned:
        """Clean a batch of DOCUMENTS."""
        outcome, survivors, kept_lines = self._decide(documents)
        kept = documents.take(pa.array(survivors.numbers))
        language = kept["language"]
        if self.language:
            language = pa.array([self.language] * kept.num_rows, pa.string())
        columns = {**{name: kept[name] for name in DOCUMENTS.names}, "language": language, "text": survivors.texts}
        made = pa.record_batch([columns[name] for name in DOCUMENTS.names], schema=DOCUMENTS)
        sizes = int(pc.sum(pc.binary_length(documents["text"])).as_py() or 0), _size(made)
        tallies = tallies_of(outcome)
        if made.num_rows:
            tallies["kept"] = {"rows": made.num_rows, "bytes": sizes[1]}
        statistics = {
            "documents_in": documents.num_rows,
            "documents_out": made.num_rows,
            "text_bytes_in": sizes[0],
            "text_bytes_out": sizes[1],
            "lines_in": len(outcome.judged.codes),
            "lines_out": kept_lines,
        }
        return Cleaned(made, tallies, statistics, outcome)

    def _decide(self, documents: pa.RecordBatch) -> tuple[Outcome, _Survivors, int]:
        """What becomes of every document, the text of those that stay, and the number of their lines."""
        codes = np.full(documents.num_rows, page_rules.KEPT, np.int8)
        details: dict[int, str] = {}
        long = too_long(documents["text"], self.rules.max_page_characters)
        codes[long] = page_rules.TOO_LONG
        read = np.flatnonzero(~long)
        texts = documents["text"].filter(pa.array(~long)) if long.any() else documents["text"]
        for page, characters in zip(np.flatnonzero(long).tolist(), _lengths(documents["text"], long), strict=True):
            details[page] = f"{characters} characters"
        judged = judge_lines(texts, self.rules)
        pages = judge_pages(judged, self.rules, self._counter)
        codes[read] = pages.codes
        for page in np.flatnonzero(pages.codes == page_rules.FEW_SENTENCES).tolist():
            details[int(read[page])] = _plural(int(pages.counts[page]), "line")
        stays = pages.codes == page_rules.KEPT
        survivors = _Survivors(read[stays], join_lines(judged, pages).filter(pa.array(stays)))
        survivors = self._in_language(survivors, codes, details)
        survivors = self._decent(survivors, documents, codes, details)
        counts = np.zeros(documents.num_rows, np.int64)
        counts[read] = pages.counts
        return Outcome(documents, read, codes, details, judged), survivors, int(counts[survivors.numbers].sum())

    def _in_language(self, survivors: _Survivors, codes: page_rules.Codes, details: dict[int, str]) -> _Survivors:
        if not self.language:
            return survivors
        guesses = guess_languages(survivors.texts, self.detector)
        kept = [is_language(g, self.language, self.detector, self.min_language_probability) for g in guesses]
        for number, guess, fits in zip(survivors.numbers.tolist(), guesses, kept, strict=True):
            if not fits:
                codes[number], details[number] = page_rules.LANGUAGE, guess.detail
        return survivors.keep(kept)

    def _decent(
        self, survivors: _Survivors, documents: pa.RecordBatch, codes: page_rules.Codes, details: dict[int, str]
    ) -> _Survivors:
        found: list[str | None] = [None] * len(survivors.numbers)
        if self.language:
            languages = np.array([self.language] * len(found), object)
        else:
            languages = documents["language"].take(pa.array(survivors.numbers)).to_numpy(zero_copy_only=False)
        for language in sorted({str(name).split("-")[0] for name in languages if name}):
            words = self._list_of(language)
            among = np.flatnonzero([str(name).split("-")[0] == language for name in languages])
            if words:
                for place, entry in zip(among, words.find(survivors.texts.take(pa.array(among))), strict=True):
                    found[place] = entry
        for number, entry in zip(survivors.numbers.tolist(), found, strict=True):
            if entry is not None:
                codes[number], details[number] = page_rules.BADWORD, entry
        return survivors.keep([entry is None for entry in found])

    def _list_of(self, language: str) -> Badwords | None:
        if language not in self._lists:
            self._lists[language] = load_badwords(
                self.badwords, language, self.rules, required=language == self.language
            )
        return self._lists[language]

    @cached_property
    def _lists(self) -> dict[str, Badwords | None]:
        return {}

    @cached_property
    def _counter(self) -> SentenceCounter:
        return SentenceCounter(self.sentences)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if not key.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _size(batch: pa.RecordBatch) -> int:
    return int(pc.sum(pc.binary_length(batch["text"])).as_py() or 0)


def _lengths(texts: pa.StringArray, chosen: Any) -> list[int]:
    lengths: list[int] = pc.utf8_length(texts.filter(pa.array(chosen))).to_pylist()
    return lengths


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def explain(text: str, cleaner: Cleaner) -> tuple[list[tuple[int, str, str | None]], str | None]:
    """Every line of a page as ``(number, stripped line, reason or None)``, and the page's own reason or None."""
    row = {name: [None] for name in DOCUMENTS.names} | {"id": [""], "source": [""], "position": [0], "text": [text]}
    outcome, _, _ = cleaner._decide(pa.record_batch([pa.array(row[f.name], f.type) for f in DOCUMENTS], DOCUMENTS))
    judged = judge_lines(pa.array([text], pa.string()), cleaner.rules)
    found: list[tuple[int, str, str | None]] = []
    for number, (start, stop) in enumerate(zip(judged.lines.starts, judged.lines.stops, strict=True)):
        code = judged.codes[number]
        reason = None if code == line_rules.KEPT else line_rules.REASONS[code]
        found.append((number, judged.lines.data[start:stop].tobytes().decode(), reason))
    page = outcome.codes[0]
    return found, None if page == page_rules.KEPT else page_rules.REASONS[page]
