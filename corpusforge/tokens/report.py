"""What a vocabulary does to text: the figures that stand in its manifest.

In: a `Vocab` and a sample of DOCUMENTS it was not learned from. Out: plain numbers and short lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.text import text_bytes
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.vocab import Vocab


def describe(vocab: Vocab, sample: pa.StringArray, top: int = 20) -> dict[str, Any]:
    """Figures of a vocabulary on a text column.

    ``fertility``: tokens a word; ``unknown_rate``: share of tokens that are [UNK]; ``character_coverage``: share of
    characters of normalised words that have a token; ``unknown_characters``: the most frequent of those that have
    none, with counts; ``longest_tokens``; ``unused_share`` and ``unseen_share``: ids that are slots, or words that the
    sample never uses, of all ids.
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
    counts = _summed(characters)
    known = _known_characters(vocab)
    foreign = [(chr(p), n) for p, n in counts if chr(p) not in known]
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
        "longest_tokens": sorted(_pieces(vocab), key=lambda t: (-len(t.removeprefix("##")), t))[:top],
        "unused_slots": slots,
        "unused_share": slots / vocab.size,
        "unseen_share": (vocab.size - slots - int(seen.sum())) / vocab.size,
    }


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


def _known_characters(vocab: Vocab) -> set[str]:
    return set("".join(token.removeprefix("##") for token in _pieces(vocab)))


def _pieces(vocab: Vocab) -> list[str]:
    specials = vocab.specials
    reserved = {specials.pad, specials.unk, specials.cls, specials.sep, specials.mask, *vocab.unused}
    return [token for i, token in enumerate(vocab.tokens) if i not in reserved]
