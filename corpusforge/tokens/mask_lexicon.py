"""Mask units larger than words: phrases and entities of a lexicon, or the words of a Chinese segmenter.

A lexicon is split by the same splitter as the text, so that a phrase is a sequence of the splitter's words and matches
whatever the case, accents and spaces; of several phrases the longest at the leftmost place counts. The phrases are a
trie over numbered words, and all places of a column walk down it together, a word at a time.

Settings that could not join any word are an error before anything is encoded; a lexicon that joins none is reported.
"""

from __future__ import annotations

import codecs
import dataclasses
import functools
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors, sections, shards
from corpusforge.arrays import I64, Bools
from corpusforge.sections.instances import MASK_UNITS, users
from corpusforge.tokens.splitting import Segmentation, Splitter, Words
from corpusforge.tokens.vocab import Vocab

CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2FA1F), (0xF900, 0xFAFF))
"""Code points that BERT sets apart as Chinese (google-research/bert, tokenization.py), its blocks put together."""


class WordJoiner(Protocol):
    """Joins several words to one mask unit: picklable, compared by value."""

    def __hash__(self) -> int: ...

    def joined(self, words: Words) -> Bools:
        """For each word whether it continues the unit of the word before it; never the first of a row."""


def joiner_of(vocab: Vocab, settings: sections.Instances) -> WordJoiner | None:
    """The joiner of words to mask units: a lexicon, which is read here, a segmenter, or None.

    Raises `errors.RecipeInvalid` if both are given, where masks are drawn by token, or where a segmenter could join
    nothing, and `errors.InputMissing` where the lexicon is missing or empty.
    """
    lexicon, segmenter = settings.mask_lexicon, settings.mask_segmenter
    if not lexicon and not segmenter:
        return None
    units = users(MASK_UNITS, "mask_lexicon")
    if settings.mask_unit not in units:
        mend = f"set mask_unit to one of {', '.join(units)}"
        raise errors.RecipeInvalid("instances.mask_unit", "a lexicon or segmenter joins words, not tokens", mend)
    if lexicon and segmenter:
        raise errors.RecipeInvalid("instances.mask_segmenter", "a lexicon is given too", "use one of the two")
    if segmenter:
        if len(vocab.segmentation.splitter().words_of("中文")) == 1:
            what = f"{segmenter} joins no words: a vocabulary of the family {vocab.family.name} does not split Chinese"
            mend = "take one that does (train-vocab --model wordpiece), or leave --mask-segmenter out"
            raise errors.RecipeInvalid("instances.mask_segmenter", what, mend)
        return Segmenter(segmenter)
    if not shards.exists(lexicon):
        raise errors.InputMissing(lexicon, "no such lexicon", "name a file with one phrase per line")
    with shards.open_binary(lexicon) as file:
        data = file.read()
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        raise errors.InputMissing(lexicon, "the lexicon holds no phrase", "write one phrase per line")
    return Lexicon(data, vocab.segmentation, lexicon)


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """Phrases by greedy longest match. ``data``: UTF-8, one phrase per line; ``where``: its name in messages."""

    data: bytes
    segmentation: Segmentation
    where: str = "lexicon"

    @property
    def digest(self) -> str:
        """xxh3-128 of the phrases, 32 hex digits."""
        return xxhash.xxh3_128_hexdigest(self.data)

    def joined(self, words: Words) -> Bools:
        trie = _trie(self)
        numbers = pc.fill_null(pc.index_in(words.values, trie.words), -1).to_numpy(zero_copy_only=False)
        lengths = _longest(trie, numbers.astype(np.int64), words.offsets)
        return _joined(lengths)


@dataclasses.dataclass(frozen=True)
class Segmenter:
    """Chinese words of jieba (extra ``zh``): joins characters, which BERT-like splitters separate."""

    name: str = "jieba"

    def joined(self, words: Words) -> Bools:
        segment = _jieba()
        values = words.values.to_pylist()
        chinese = np.fromiter(map(_is_chinese, values), bool, len(values))
        first = np.zeros(len(values) + 1, bool)
        first[words.offsets] = True
        joined = chinese.copy()
        joined[1:] &= chinese[:-1] & ~first[1:-1]
        joined[:1] = False
        begins = np.flatnonzero(chinese & ~joined)
        ends = np.flatnonzero(chinese & ~np.append(joined[1:], False)) + 1
        # Python loop: the segmenter is a Python library that takes one text at a time.
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            at = begin
            for word in segment("".join(values[begin:end])):
                joined[at] = False
                at += len(word)
        return joined


@dataclasses.dataclass(frozen=True)
class _Trie:
    """``words``: all words of phrases. Node 0 is the root; ``edges[k] = node * len(words) + word`` leads to node k + 1;
    ``is_end``: whether a phrase ends at a node."""

    words: pa.StringArray
    edges: I64
    is_end: Bools


@functools.lru_cache(maxsize=2)
def _trie(lexicon: Lexicon) -> _Trie:
    """The phrases with two words or more, level by level."""
    phrases = _phrases(lexicon)
    coded = phrases.values.dictionary_encode()
    numbers, size = coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
    counts = np.diff(phrases.offsets)
    rows = np.flatnonzero(counts > 1)
    node, edges, ends = np.zeros(len(rows), np.int64), [np.zeros(0, np.int64)], [np.zeros(1, bool)]
    depth, known = 0, 1
    while len(rows):
        new, place = np.unique(node * size + numbers[phrases.offsets[rows] + depth], return_inverse=True)
        depth += 1
        is_end = np.zeros(len(new), bool)
        is_end[place[counts[rows] == depth]] = True
        edges.append(new)
        ends.append(is_end)
        node, known = known + place, known + len(new)
        on = counts[rows] > depth
        rows, node = rows[on], node[on]
    # Nodes are numbered level by level, and edges begin with their node: they ascend.
    return _Trie(coded.dictionary, np.concatenate(edges), np.concatenate(ends))


def _phrases(lexicon: Lexicon) -> Words:
    """The words of each phrase, once as at the beginning of a text and once as after a space."""
    try:
        lines = [line.strip() for line in lexicon.data.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise errors.InputUnreadable(
            lexicon.where, f"not UTF-8: {error}", "save it as UTF-8, one phrase per line"
        ) from None
    splitter: Splitter = lexicon.segmentation.splitter()
    data = [given.encode() for line in lines if line for given in (line, f" {line}")]
    rows = np.cumsum([0, *map(len, data)], dtype=np.int64)
    words = splitter.split(np.frombuffer(b"".join(data), np.uint8), rows)
    return words._replace(values=splitter.marked(words.values))


def _longest(trie: _Trie, numbers: I64, offsets: I64) -> I64:
    """For each word the number of words of the longest phrase that begins with it; 1 if there is none."""
    lengths = np.ones(len(numbers), np.int64)
    if not len(trie.edges):
        return lengths
    ends = np.repeat(offsets[1:], np.diff(offsets))
    at, node, depth = np.arange(len(numbers)), np.zeros(len(numbers), np.int64), 0
    while len(at):
        inside = at + depth < ends[at]
        at, node = at[inside], node[inside]
        word = numbers[at + depth]
        edge = node * len(trie.words) + word
        place = np.minimum(np.searchsorted(trie.edges, edge), len(trie.edges) - 1)
        known = (word >= 0) & (trie.edges[place] == edge)
        at, node, depth = at[known], place[known] + 1, depth + 1
        lengths[at[trie.is_end[node]]] = depth
    return lengths


def _joined(lengths: I64) -> Bools:
    """Phrases chosen from the left, none inside another: all their words but the first belong to the one before.

    >>> _joined(np.array([1, 3, 2, 1, 2, 1])).tolist()
    [False, False, True, True, False, True]
    """
    begins = np.flatnonzero(lengths > 1)
    joined = np.zeros(len(lengths), bool)
    if not len(begins):
        return joined
    # From each phrase jump to the next one that may be chosen; the last jumps to itself. Doubling finds all of them.
    jump = np.append(np.searchsorted(begins, begins + lengths[begins]), len(begins))
    chosen = np.zeros(len(jump), bool)
    chosen[0] = True
    for _ in range(len(begins).bit_length()):
        chosen[jump[chosen]] = True
        jump = jump[jump]
    firsts = begins[chosen[:-1]]
    edges = np.zeros(len(lengths) + 1, np.int64)
    edges[firsts + 1] += 1
    edges[firsts + lengths[firsts]] -= 1
    return np.asarray(np.cumsum(edges[:-1]) > 0)


def _is_chinese(word: str) -> bool:
    return len(word) == 1 and any(low <= ord(word) <= high for low, high in CHINESE)


@functools.lru_cache(maxsize=1)
def _jieba() -> Any:
    try:
        import logging

        import jieba
    except ImportError:
        mend = "pip install 'corpusforge[zh]', or use a lexicon (mask_lexicon)"
        raise errors.ExtraMissing("instances.mask_segmenter", "jieba is not installed", mend) from None
    jieba.setLogLevel(logging.WARNING)
    return jieba.lcut
