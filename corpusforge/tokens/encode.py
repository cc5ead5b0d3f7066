"""Encode documents to token ids, sentence by sentence: exactly the library's ids, at several times its speed.

Text obeys Zipf's law (2.85 M words of a corpus are 56 k distinct ones), so text is split into words, these are
dictionary-encoded, and only new words are encoded; ids are then gathered by index. Words are independent of
each other in all families, which is what makes this exact. New words are encoded side by side in the library's own
order of steps (`Family.column_encoder`), and by the library itself where equality is not proven.

Text can never produce a special id: the library's model is used without added tokens, and each family ensures that no
word is one of its special and unused tokens (`Family.check`, `Family.word_tokenizer`).

Word starts, for masks of whole words, follow one rule: a token begins a word where its id does (`Family.starts_word`:
it has no ``##`` prefix; it has a space marker), and where it is the first of its sentence. A `WordJoiner` (a lexicon, a
segmenter) may then join words of the splitter, which take their starts from all but the first.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge import text
from corpusforge.arrays import I32, I64, Bools, offsets_of, slices
from corpusforge.schemas import token_type, tokens_schema
from corpusforge.sentences import splitter
from corpusforge.tokens.column_encoders import ColumnEncoder
from corpusforge.tokens.lookup import KnownWords
from corpusforge.tokens.mask_lexicon import WordJoiner
from corpusforge.tokens.splitting import Words
from corpusforge.tokens.vocab import Vocab

CACHE_BYTES = 128 << 20
"""Memory for known words; when full it is emptied and fills again. Ids do not depend on it."""

_ENTRY_BYTES = 100
"""The most that a known word costs besides its own bytes: a key, slots of a table, ids and offsets."""

BATCH_BYTES = 4 << 20
"""Text encoded at once; a longer document is encoded alone."""

FEW_WORDS = 800
"""Fewer new words than this go to the library: by columns they would take longer."""


class Encoded(NamedTuple):
    """A TOKENS batch and its statistics."""

    tokens: pa.RecordBatch
    statistics: dict[str, int]


class _Part(NamedTuple):
    """A part of the documents: ids and word starts flat, tokens of each sentence, sentences of each row, statistics."""

    ids: npt.NDArray[Any]
    starts: Bools
    lengths: I32
    rows: I64
    statistics: dict[str, int]


class Encoder:
    """Encodes documents with one vocabulary; picklable, without its cache.

    ``word_starts``: write that column of TOKENS too; ``joiner``: joins several words to one mask unit.
    """

    def __init__(
        self,
        vocab: Vocab,
        cache_bytes: int = CACHE_BYTES,
        *,
        word_starts: bool = False,
        joiner: WordJoiner | None = None,
    ) -> None:
        self.vocab, self._cache_bytes, self._joiner = vocab, cache_bytes, joiner
        self._starts_word = vocab.family.starts_word(vocab) if word_starts else None
        self._splitter = vocab.segmentation.splitter()
        self._library: Any = None
        self._columns: ColumnEncoder | None = None
        self._dtype = np.uint16 if token_type(vocab.size) == pa.uint16() else np.uint32
        self._forget()

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        options: dict[str, Any] = {"word_starts": self._starts_word is not None, "joiner": self._joiner}
        return functools.partial(Encoder, self.vocab, self._cache_bytes, **options), ()

    def encode(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """TOKENS of DOCUMENTS, row for row. Sentences without tokens are left out; a row may be empty."""
        return self.encode_counted(documents).tokens

    def encode_counted(self, documents: pa.RecordBatch) -> Encoded:
        """The same with counts: documents, sentences, sentences_empty, words, tokens, unknown_tokens, ..."""
        column = documents.column("text")
        _, offsets = text.text_bytes(column)
        parts = [self._encode_rows(column.slice(a, b - a)) for a, b in slices(offsets, BATCH_BYTES)]
        ids = np.concatenate([part.ids for part in parts] or [np.empty(0, self._dtype)])
        starts = np.concatenate([part.starts for part in parts] or [np.empty(0, bool)])
        lengths = np.concatenate([part.lengths for part in parts] or [np.empty(0, np.int32)])
        rows = np.concatenate([part.rows for part in parts] or [np.empty(0, np.int64)])
        statistics: dict[str, int] = {"documents": len(column), "text_bytes": int(offsets[-1] - offsets[0])}
        for part in parts:
            for key, value in part.statistics.items():
                statistics[key] = statistics.get(key, 0) + value
        return Encoded(self._batch(documents, ids, starts, lengths, rows), statistics)

    def encode_words(self, words: pa.StringArray) -> tuple[npt.NDArray[Any], I64]:
        """Ids of normalized words, flat, and the tokens of each word."""
        coded = words.dictionary_encode()
        numbers = self._lookup(coded.dictionary)[coded.indices.to_numpy()]
        # To Arrow the ids of a word are a string of bytes: the fastest way to gather many short runs.
        width = self._ids.itemsize
        buffers = [None, pa.py_buffer(self._ends * width), pa.py_buffer(self._ids)]
        taken = pa.Array.from_buffers(pa.large_binary(), len(self._known), buffers).take(pa.array(numbers))
        ends = np.frombuffer(taken.buffers()[1] or b"", np.int64, len(words) + 1 if len(words) else 0)
        return np.frombuffer(taken.buffers()[2] or b"", self._dtype), np.diff(ends) // width

    def _encode_rows(self, column: pa.StringArray) -> _Part:
        spans = splitter.sentence_spans(column)
        if not len(spans.starts):
            nothing, none = np.empty(0, self._dtype), np.empty(0, np.int32)
            return _Part(nothing, np.empty(0, bool), none, np.zeros(len(column), np.int64), {"sentences_empty": 0})
        words = self._sentence_words(spans)
        ids, tokens = self.encode_words(words.values)
        ends = offsets_of(tokens)
        joined = self._joined(words)
        lengths, starts = np.diff(ends[words.offsets]), self._starts(ids, ends, words, joined)
        filled = lengths > 0
        rows = np.diff(np.concatenate([[0], np.cumsum(filled)])[spans.offsets])
        statistics = {
            "sentences": int(filled.sum()),
            "sentences_empty": int(len(filled) - filled.sum()),
            "sentences_by_library": words.by_library,
            "words": len(words.values),
            "tokens": len(ids),
            "unknown_tokens": int(np.count_nonzero(ids == self.vocab.specials.unk)),
            **_count_joined(joined),
        }
        return _Part(ids, starts, lengths[filled].astype(np.int32), rows, statistics)

    def _sentence_words(self, spans: text.Spans) -> Words:
        """Words of sentences. Where white space has tokens, that between two sentences belongs to the second."""
        if not self._splitter.keeps_space:
            # Between two sentences there is only white space, so each may end where the next begins.
            return self._splitter.split(spans.data, np.append(spans.starts, spans.stops[-1]))
        begins = np.append(spans.starts[0], spans.stops[:-1])
        first = spans.offsets[:-1][np.diff(spans.offsets) > 0]
        begins[first] = spans.starts[first]
        # Every other row lies between two documents.
        words = self._splitter.split(spans.data, np.stack([begins, spans.stops], axis=1).ravel())
        lengths = np.diff(words.offsets)
        offsets = offsets_of(lengths[::2])
        if not lengths[1::2].any():
            return words._replace(offsets=offsets)
        kept = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
        return words._replace(values=words.values.filter(pa.array(kept)), offsets=offsets)

    def _joined(self, words: Words) -> Bools | None:
        """Which words belong to the one before them; None where nothing joins words, or without word starts."""
        if self._joiner is None or self._starts_word is None:
            return None
        return self._joiner.joined(words._replace(values=self._splitter.marked(words.values)))

    def _starts(self, ids: npt.NDArray[Any], ends: I64, words: Words, joined: Bools | None) -> Bools:
        """Which tokens begin a word; word w has tokens ``ends[w]`` to ``ends[w + 1]``. Empty if not requested."""
        if self._starts_word is None:
            return np.empty(0, bool)
        starts: Bools = self._starts_word[ids]
        if joined is not None:
            starts[ends[:-1][joined & (np.diff(ends) > 0)]] = False
        begins = ends[words.offsets]
        starts[begins[:-1][np.diff(begins) > 0]] = True
        return starts

    def _batch(
        self,
        documents: pa.RecordBatch,
        ids: npt.NDArray[Any],
        starts: Bools,
        lengths: I32,
        rows: I64,
    ) -> pa.RecordBatch:
        sentence_offsets = offsets_of(rows)
        token_offsets = offsets_of(lengths)[sentence_offsets]
        schema = tokens_schema(self.vocab.size, word_starts=self._starts_word is not None)
        columns = [
            documents.column("id"),
            pa.ListArray.from_arrays(token_offsets.astype(np.int32), pa.array(ids)),
            pa.ListArray.from_arrays(sentence_offsets.astype(np.int32), pa.array(lengths)),
        ]
        if self._starts_word is not None:
            columns += [pa.ListArray.from_arrays(token_offsets.astype(np.int32), pa.array(starts))]
        return pa.record_batch([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)

    def _forget(self) -> None:
        self._known = KnownWords()
        self._filled = 0
        self._ids, self._ends = np.empty(0, self._dtype), np.zeros(1, np.int64)

    def _lookup(self, words: pa.StringArray) -> I32:
        """The numbers of these distinct words in the cache; unseen words are encoded first."""
        if self._filled > self._cache_bytes:
            self._forget()
        known = self._known.find(words)
        unseen = np.flatnonzero(known < 0)
        if len(unseen):
            known[unseen] = len(self._known) + np.arange(len(unseen))  # where `_learn` puts them
            self._learn(words.take(pa.array(unseen)))
        return known

    def _learn(self, words: pa.StringArray) -> None:
        ids, lengths = self._encode_new(self._splitter.marked(words))
        self._known.add(words)
        self._filled += words.nbytes + _ENTRY_BYTES * len(words)
        self._ids = np.concatenate([self._ids, ids.astype(self._dtype)])
        self._ends = np.concatenate([self._ends, self._ends[-1] + np.cumsum(lengths)])

    def _encode_new(self, words: pa.StringArray) -> tuple[npt.NDArray[Any], I64]:
        """Ids of words, flat, and the tokens of each: by columns, and by the library where those leave a word."""
        if len(words) < FEW_WORDS:
            return self._by_library(words)
        if self._columns is None:
            self._columns = self.vocab.family.column_encoder(self.vocab)
        ids, lengths, left = self._columns.encode(words)
        if not left.any():
            return ids, lengths
        more, lengths[left] = self._by_library(words.filter(pa.array(left)))
        together = np.empty(len(ids) + len(more), np.int64)
        inserted = np.repeat(left, lengths)
        together[inserted], together[~inserted] = more, ids
        return together, lengths

    def _by_library(self, words: pa.StringArray) -> tuple[npt.NDArray[Any], I64]:
        if self._library is None:
            self._library = self.vocab.family.word_tokenizer(self.vocab)
        encoding = self._library.encode(words.to_pylist(), is_pretokenized=True, add_special_tokens=False)
        lengths = np.bincount(np.array(encoding.word_ids, np.int64), minlength=len(words))
        return np.array(encoding.ids, np.int64), lengths


def _count_joined(joined: Bools | None) -> dict[str, int]:
    """Mask units made of several words, and the words in them; empty where no joiner is used.

    >>> _count_joined(np.array([False, True, True, False, True]))
    {'units_joined': 2, 'words_joined': 5}
    """
    if joined is None:
        return {}
    units = int(np.count_nonzero(joined & ~np.append(False, joined[:-1])))
    return {"units_joined": units, "words_joined": units + int(np.count_nonzero(joined))}
