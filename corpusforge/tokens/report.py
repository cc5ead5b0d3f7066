"""What a vocabulary does to text: the figures that stand in its manifest.

In: a `Vocab` and a sample of DOCUMENTS it was not learned from. Out: plain numbers and short lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.text import text_bytes
from corpusforge.tokens.byte_bpe import text_of
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.pieces import SPACE
from corpusforge.tokens.vocab import Vocab


def describe(vocab: Vocab, sample: pa.StringArray, top: int = 20) -> dict[str, Any]:
    """Figures of a vocabulary on a text column.

    ``fertility``: tokens a word; ``unknown_rate``: share of tokens that are [UNK]; ``character_coverage``: share of
    characters of normalised words that have a token; ``unknown_characters``: the most frequent of those that have
    none, with counts (where tokens are bytes, every character has some); ``longest_tokens``; ``unused_share`` and
    ``unseen_share``: ids that are slots, or words that the sample never uses, of all ids.
    """
    data, rows = text_bytes(sample)
    seen = np.zeros(vocab.size, np.bool_)
    words = tokens = unknown = 0
    characters: list[pa.Table] = []
    encoder = Encoder(vocab)
    for part in vocab.cutting.splitter().chunks(data, rows):
        ids = encoder.encode_words(part.values)[0]
        seen[ids] = True
        words, tokens = words + len(part.values), tokens + len(ids)
        unknown += int(np.count_nonzero(ids == vocab.specials.unk))
        characters.append(_characters(part.values))
    counts = [(p, n) for p, n in _summed(characters) if chr(p) != SPACE]
    foreign = _foreign(vocab, counts)
    total = sum(n for _, n in counts)
    slots = len(vocab.unused)
    return {
        "size": vocab.size,
        "sample_bytes": int(rows[-1] - rows[0]),
        "sample_words": words,
        "sample_tokens": tokens,
        "fertility": tokens / max(words, 1),
        "bytes_per_token": int(rows[-1] - rows[0]) / max(tokens, 1),
        "unknown_rate": unknown / max(tokens, 1),
        "character_coverage": 1 - sum(n for _, n in foreign) / max(total, 1),
        "unknown_characters": [{"character": c, "count": n} for c, n in foreign[:top]],
        "longest_tokens": longest_tokens(vocab, _pieces(vocab))[:top],
        "unused_slots": slots,
        "unused_share": slots / vocab.size,
        "unseen_share": (vocab.size - slots - int(seen.sum())) / vocab.size,
    }


def spelling(vocab: Vocab, token: str) -> str:
    """The text that a token stands for, without the marks of its family."""
    if vocab.family.name == "bpe":
        return text_of(token)
    return token.removeprefix("##") if vocab.family.name.startswith("wordpiece") else token.replace("\u2581", " ")


def longest_tokens(vocab: Vocab, tokens: list[str]) -> list[str]:
    """These tokens, longest text first; tokens of bytes are written as text, its spaces as U+2581."""
    ordered = sorted(tokens, key=lambda token: (-len(spelling(vocab, token)), token))
    return [shown(vocab, token) for token in ordered]


def shown(vocab: Vocab, token: str) -> str:
    """A token as people read it: tokens of bytes as text, its spaces as U+2581; others as they are."""
    return spelling(vocab, token).replace(" ", "\u2581") if vocab.family.name == "bpe" else token


def _characters(words: pa.StringArray) -> pa.Table:
    data, offsets = text_bytes(words)
    letters = data[offsets[0] : offsets[-1]].tobytes().decode()
    points, counts = np.unique(np.frombuffer(letters.encode("utf-32-le"), np.uint32), return_counts=True)
    return pa.table({"point": points, "count": counts})


def _summed(tables: list[pa.Table]) -> list[tuple[int, int]]:
    """(code point, count), most frequent first, then by code point."""
    if not tables:
        return []
    summed = pa.concat_tables(tables).group_by("point", use_threads=False).aggregate([("count", "sum")])
    order = pc.sort_indices(summed, sort_keys=[("count_sum", "descending"), ("point", "ascending")])
    ordered = summed.take(order)
    return list(zip(ordered["point"].to_pylist(), ordered["count_sum"].to_pylist(), strict=True))


def _foreign(vocab: Vocab, counts: list[tuple[int, int]]) -> list[tuple[str, int]]:
    """Characters without a token, with counts."""
    if vocab.family.name == "bpe":  # every byte has one
        return []
    known = set("".join(spelling(vocab, token) for token in _pieces(vocab)))
    return [(chr(point), count) for point, count in counts if chr(point) not in known]


def _pieces(vocab: Vocab) -> list[str]:
    specials = vocab.specials
    reserved = {specials.pad, specials.unk, specials.cls, specials.sep, specials.mask, *vocab.unused}
    return [token for i, token in enumerate(vocab.tokens) if i not in reserved]
