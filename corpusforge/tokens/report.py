"""Measure a vocabulary on text: the figures in its manifest, of all text and of every language.

Everything follows from one count of a sample, by id and by character, so the figures of all text are those of the
languages added up.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import I64
from corpusforge.text import text_bytes
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.sentencepiece_split import SPACE
from corpusforge.tokens.vocab import Vocab

UNKNOWN_LANGUAGE = "unknown"
"""The name for text whose language was not determined."""

LANGUAGES = 32
"""Languages that are counted separately, those of most text; the others are counted together as "other"."""

LONGEST_LENGTH = 64
"""Longer tokens are counted as of this many characters."""

_RANKS = 64
"""Points of the frequency curve, evenly spaced on a logarithmic axis."""


class Counted(NamedTuple):
    """Counts of encoded text. ``occurrences``: by id; ``characters``: (point, count) of words."""

    documents: int
    bytes: int
    words: int
    occurrences: I64
    characters: list[pa.Table]


def describe(
    vocab: Vocab, sample: pa.StringArray, languages: pa.StringArray | None = None, top: int = 20
) -> dict[str, Any]:
    """Figures of a vocabulary on a text column; ``languages``: of the rows, null where unknown.

    ``fertility``: tokens per word, as the family splits text; ``unknown_rate``: share of tokens that are [UNK];
    ``character_coverage``: share of characters of normalized words that have a token; ``unknown_characters``: the most
    frequent of those that have none, with counts (where tokens are bytes, every character has some);
    ``longest_tokens``; ``unused_share`` and ``unseen_share``: share of ids that are slots, and of others that the
    sample never uses; ``token_lengths``: tokens by their characters; ``token_frequencies``: occurrences at some ranks;
    ``languages``: the same by language, most text first, with the longest tokens seen in it.
    """
    encoder = Encoder(vocab)
    parts = {name: _count(encoder, rows) for name, rows in _by_language(sample, languages).items()}
    whole = functools.reduce(_together, parts.values(), Counted(0, 0, 0, np.zeros(vocab.size, np.int64), []))
    known, slots = _known_characters(vocab), len(vocab.unused)
    sums = {f"sample_{key}": getattr(whole, key) for key in ("documents", "bytes", "words")}
    return {
        "size": vocab.size,
        **sums,
        "sample_tokens": int(whole.occurrences.sum()),
        **_rates(vocab, whole, known),
        "unknown_characters": [{"character": c, "count": n} for c, n in _foreign(_summed(whole), known)[:top]],
        "longest_tokens": longest_tokens(vocab, _ordinary(vocab))[:top],
        "unused_slots": slots,
        "unused_share": slots / vocab.size,
        "token_lengths": _lengths(vocab),
        "token_frequencies": _frequencies(whole.occurrences),
        "languages": {name: _of_language(vocab, part, known) for name, part in parts.items()},
    }


def _by_language(sample: pa.StringArray, languages: pa.StringArray | None) -> dict[str, pa.StringArray]:
    """The rows of each language, the one of most bytes first."""
    if languages is None:
        languages = pa.nulls(len(sample), pa.string())
    named = pc.fill_null(languages, UNKNOWN_LANGUAGE)
    table = pa.table({"language": named, "bytes": pc.binary_length(sample).cast(pa.int64())})
    sums = table.group_by("language", use_threads=False).aggregate([("bytes", "sum")])
    order = sums.sort_by([("bytes_sum", "descending"), ("language", "ascending")])["language"].to_pylist()
    rows = {name: sample.filter(pc.equal(named, name)) for name in order[:LANGUAGES]}
    if len(order) > LANGUAGES:
        rows["other"] = sample.filter(pc.invert(pc.is_in(named, pa.array(order[:LANGUAGES]))))
    return rows


def _count(encoder: Encoder, sample: pa.StringArray) -> Counted:
    data, rows = text_bytes(sample)
    occurrences = np.zeros(encoder.vocab.size, np.int64)
    words, characters = 0, []
    splitter = encoder.vocab.segmentation.splitter()
    for part in splitter.chunks(data, rows):
        occurrences += np.bincount(encoder.encode_words(part.values)[0], minlength=len(occurrences))
        words += len(part.values)
        characters.append(_characters(splitter.marked(part.values)))
    return Counted(len(sample), int(rows[-1] - rows[0]), words, occurrences, characters)


def _together(one: Counted, other: Counted) -> Counted:
    sums = (one.documents + other.documents, one.bytes + other.bytes, one.words + other.words)
    return Counted(*sums, one.occurrences + other.occurrences, one.characters + other.characters)


def _rates(vocab: Vocab, counted: Counted, known: set[str] | None) -> dict[str, float]:
    tokens = int(counted.occurrences.sum())
    characters = _summed(counted)
    total, foreign = sum(n for _, n in characters), sum(n for _, n in _foreign(characters, known))
    seen = int(np.count_nonzero(counted.occurrences))
    return {
        "fertility": tokens / max(counted.words, 1),
        "bytes_per_token": counted.bytes / max(tokens, 1),
        "unknown_rate": int(counted.occurrences[vocab.specials.unk]) / max(tokens, 1),
        "character_coverage": 1 - foreign / max(total, 1),
        "unseen_share": (vocab.size - len(vocab.unused) - seen) / vocab.size,
    }


def _of_language(vocab: Vocab, counted: Counted, known: set[str] | None) -> dict[str, Any]:
    reserved = set(vocab.reserved)
    seen = [vocab.tokens[i] for i in np.flatnonzero(counted.occurrences).tolist() if i not in reserved]
    sums = {"documents": counted.documents, "bytes": counted.bytes, "words": counted.words}
    tokens = {"tokens": int(counted.occurrences.sum())}
    longest = longest_tokens(vocab, seen)[:5]
    return {**sums, **tokens, **_rates(vocab, counted, known), "longest_tokens": longest}


def _lengths(vocab: Vocab) -> list[int]:
    """Tokens of 0, 1, 2, ... characters, without specials and slots."""
    lengths = [min(len(vocab.family.text_of(token)), LONGEST_LENGTH) for token in _ordinary(vocab)]
    return [int(n) for n in np.bincount(np.array(lengths, np.int64))]


def _frequencies(occurrences: I64) -> dict[str, list[int]]:
    """Occurrences of the most frequent token, the second, ...: at selected ranks up to the last that occurs."""
    ordered = np.sort(occurrences[occurrences > 0])[::-1]
    if not len(ordered):
        return {"ranks": [], "occurrences": []}
    ranks = np.unique(np.geomspace(1, len(ordered), _RANKS).round().astype(np.int64))
    return {"ranks": ranks.tolist(), "occurrences": ordered[ranks - 1].tolist()}


def longest_tokens(vocab: Vocab, tokens: list[str]) -> list[str]:
    """These tokens, longest text first; tokens of bytes are written as text, its spaces as U+2581."""
    ordered = sorted(tokens, key=lambda token: (-len(vocab.family.text_of(token)), token))
    return [shown(vocab, token) for token in ordered]


def shown(vocab: Vocab, token: str) -> str:
    """A token as people read it: tokens of bytes as text, its spaces as U+2581; others as they are."""
    return vocab.family.text_of(token).replace(" ", "\u2581") if vocab.family.byte_level else token


def _characters(words: pa.StringArray) -> pa.Table:
    data, offsets = text_bytes(words)
    letters = data[offsets[0] : offsets[-1]].tobytes().decode()
    points, counts = np.unique(np.frombuffer(letters.encode("utf-32-le"), np.uint32), return_counts=True)
    return pa.table({"point": points, "count": counts})


def _summed(counted: Counted) -> list[tuple[str, int]]:
    """Characters with counts, most frequent first, then by code point; without the mark of spaces."""
    if not counted.characters:
        return []
    tables = pa.concat_tables(counted.characters)
    summed = tables.group_by("point", use_threads=False).aggregate([("count", "sum")])
    ordered = summed.sort_by([("count_sum", "descending"), ("point", "ascending")])
    points, counts = ordered["point"].to_pylist(), ordered["count_sum"].to_pylist()
    return [(chr(point), n) for point, n in zip(points, counts, strict=True) if chr(point) != SPACE]


def _known_characters(vocab: Vocab) -> set[str] | None:
    """Characters with a token; None where every byte has one."""
    if vocab.family.byte_level:
        return None
    return set("".join(vocab.family.text_of(token) for token in _ordinary(vocab)))


def _foreign(counts: list[tuple[str, int]], known: set[str] | None) -> list[tuple[str, int]]:
    """Characters without a token, with counts."""
    return [] if known is None else [(character, n) for character, n in counts if character not in known]


def _ordinary(vocab: Vocab) -> list[str]:
    reserved = set(vocab.reserved) | {vocab.specials.unk}
    return [token for i, token in enumerate(vocab.tokens) if i not in reserved]
