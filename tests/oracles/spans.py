"""The slow, obvious exact-spans: Python strings, dictionaries and loops; one document at a time.

Shares with the real one only the sentence splitter and the document key.
"""

from __future__ import annotations

import unicodedata
from typing import Any, NamedTuple

import pyarrow as pa
import xxhash

from corpusforge.sentences import splitter


class Outcome(NamedTuple):
    """Kept documents ``{id: text}`` and audit rows as in REPEATS."""

    documents: dict[str, str]
    repeats: list[tuple[Any, ...]]


def sentences_of(document: str) -> list[tuple[int, int]]:
    """Byte spans of the sentences of one text."""
    found = splitter.sentence_spans(pa.array([document], pa.string()))
    base = int(found.bases[0])
    return [(int(a) - base, int(b) - base) for a, b in zip(found.starts, found.stops, strict=True)]


def words_of(sentence: str, fold_numbers: bool = False) -> tuple[str, ...]:
    """The normal form of a sentence: lower-case words."""
    characters = []
    for character in sentence:
        kind = unicodedata.category(character)
        if kind[0] in "ZP" or kind in ("Cc", "Cf"):
            characters.append(" ")
        elif fold_numbers and kind == "Nd":
            characters.append("0")
        else:
            lower = character.lower()
            characters.append(lower if len(lower) == 1 else lower[0])
    return tuple(word for word in "".join(characters).split(" ") if word)


def dedupe(
    documents: dict[str, str],
    *,
    length: int = 3,
    min_sentences: int = 3,
    min_words: int = 0,
    fold_numbers: bool = False,
    keep: str = "hash",
) -> Outcome:
    """Cut all but the first of any span of ``length`` sentences."""
    longest = keep == "longest"
    before = {name: -len(document.encode()) if longest else 0 for name, document in documents.items()}
    order = sorted(documents, key=lambda name: (before[name], xxhash.xxh3_64_intdigest(name.encode())))
    raw = {name: documents[name].encode() for name in order}
    spans = {name: sentences_of(documents[name]) for name in order}
    forms = {n: [words_of(raw[n][a:b].decode(), fold_numbers) for a, b in spans[n]] for n in order}
    first: dict[tuple[tuple[str, ...], ...], tuple[str, int]] = {}
    losers: dict[str, list[tuple[int, str, int]]] = {name: [] for name in order}
    for name in order:
        for i in range(len(forms[name]) - length + 1):
            key = tuple(forms[name][i : i + length])
            if not any(key):
                continue
            if key in first:
                losers[name].append((i, *first[key]))
            else:
                first[key] = (name, i)
    floors = (min_sentences, min_words)
    return cut_all({name: documents[name] for name in order}, losers, length, floors)


def cut_all(
    documents: dict[str, str],
    losers: dict[str, list[tuple[int, str, int]]],
    length: int,
    floors: tuple[int, int] = (3, 0),
    reason: str = "span:repeated",
) -> Outcome:
    """Cut these spans, each given by its first sentence and the document and sentence where its copy begins.

    ``floors``: sentences and words that a document that lost text must have left.
    """
    raw = {name: document.encode() for name, document in documents.items()}
    spans = {name: sentences_of(document) for name, document in documents.items()}
    kept, repeats = {}, []
    for name in documents:
        rest, rows = _cut(name, raw[name], spans[name], losers[name], length, spans)
        repeats += [(row[0], reason, *row[2:]) for row in rows]
        if not losers[name]:
            kept[name] = documents[name]
            continue
        left = len(spans[name]) - len({i + k for i, _, _ in losers[name] for k in range(length)})
        if left < max(1, floors[0]):
            repeats.append((name, "page:few-sentences", 0, len(raw[name]), rest, None, None))
        elif len(rest.split()) < floors[1]:
            repeats.append((name, "page:few-words", 0, len(raw[name]), rest, None, None))
        else:
            kept[name] = rest
    return Outcome(kept, repeats)


def _cut(
    name: str,
    raw: bytes,
    spans: list[tuple[int, int]],
    losers: list[tuple[int, str, int]],
    length: int,
    all_spans: dict[str, list[tuple[int, int]]],
) -> tuple[str, list[tuple[Any, ...]]]:
    copies: dict[int, tuple[str, int]] = {}
    for i, other, j in losers:  # ascending, so the last span that covers a sentence names its copy
        for k in range(length):
            copies[i + k] = (other, j + k)
    if not copies:
        return raw.decode(), []
    left = [i for i in range(len(spans)) if i not in copies]
    pieces = []
    if not left:
        pieces = [raw[: spans[0][0]], raw[spans[-1][1] :]]
    else:
        pieces.append(raw[: spans[0][0]])
        for before, after in zip([None, *left], left, strict=False):
            if before is not None:
                gaps = [raw[spans[i][1] : spans[i + 1][0]] for i in range(before, after)]
                pieces.append(next((gap for gap in gaps if b"\n" in gap), gaps[0]))
            pieces.append(raw[spans[after][0] : spans[after][1]])
        pieces.append(raw[spans[-1][1] :])
    rows: list[list[Any]] = []
    for i in sorted(copies):
        other, j = copies[i]
        if rows and rows[-1][-1] == i - 1 and copies.get(i - 1) == (other, j - 1):
            rows[-1][1], rows[-1][-1] = spans[i][1], i
        else:
            rows.append([spans[i][0], spans[i][1], other, all_spans[other][j][0], i])
    audit = [(name, "span:repeated", a, b, raw[a:b].decode(), o, s) for a, b, o, s, _ in rows]
    return b"".join(pieces).decode(), audit
