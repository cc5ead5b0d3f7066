"""Learns a WordPiece vocabulary from a table of word counts, the same one in every run.

In: COUNTS (word, count). Out: a `Vocab` of exactly the size asked for. The learning is done by `tokenizers`'
WordPieceTrainer, which is byte-pair merges written as ``##`` pieces (huggingface/tokenizers, trainers/wordpiece.rs);
Google never released BERT's own trainer. Memory and time depend on distinct words, never on the size of the corpus.

The library's result depends on the iteration order of its hash maps in three places; each is taken from it here:

- which of equally frequent characters survive the alphabet limit: the alphabet is chosen here (count, then code point);
- the numbering of ``##c`` characters, which breaks ties between merges: they are handed over in order, as if special;
- a character outside the alphabet is skipped inside its word, so that its neighbours look adjacent: such words, which
  encoding turns into [UNK] anyway, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64, U32, U64
from corpusforge.tokens.vocab import Vocab, check_size
from corpusforge.tokens.wordpiece import MAX_WORD_CHARACTERS, arrange
from corpusforge.tokens.words import Normalization, splitter_for

FED_OCCURRENCES = 16_000_000
"""Most word occurrences the trainer is given, about ten seconds of reading; above it counts are scaled down."""

_SPECIALS = 5

_SLICE_WORDS = 1 << 18
"""Words whose characters are looked at together: bounds memory at four million words."""


class Learned(NamedTuple):
    """A vocabulary and what is to be said about how it came about."""

    vocab: Vocab
    statistics: dict[str, float]


class Prepared(NamedTuple):
    """What a learner of WordPiece begins with: words of the alphabet alone, sorted, and its characters.

    ``characters`` begin words, ``inner`` are those that occur inside, as ``##c``; ``room``: ids for both and merges.
    """

    kept: pa.Table
    characters: list[str]
    inner: list[str]
    room: int
    normalization: Normalization
    statistics: dict[str, float]

    @property
    def first(self) -> list[str]:
        """The pieces that are there before any merge."""
        return [*self.characters, *self.inner]


def learn_wordpiece(counts: pa.Table, size: int, **settings: Any) -> Vocab:
    """The vocabulary of `learn`, without its statistics."""
    return learn(counts, size, **settings).vocab


def learn(
    counts: pa.Table,
    size: int,
    *,
    unused: int = 128,
    lowercase: bool = True,
    alphabet: int = 1000,
    allow_any_size: bool = False,
    fed: int = FED_OCCURRENCES,
) -> Learned:
    """Learn a WordPiece vocabulary of ``size`` ids, specials and at least ``unused`` slots among them.

    ``counts``: COUNTS in any order (`counts.select_counts`); ``alphabet``: most distinct characters kept. Where the
    words do not suffice to fill the size, more [unusedN] slots do. Statistics: characters, words used and left out,
    ``count_scale`` (1: counts as they are), merges, unused.

    Raises `errors.RecipeInvalid` where the size is no multiple of 64 or too small for specials, slots and characters.
    """
    prepared = prepare(counts, size, unused=unused, lowercase=lowercase, alphabet=alphabet, any_size=allow_any_size)
    scaled, scale = scale_counts(prepared.kept["count"].to_numpy(), fed)
    pieces = _train(prepared, scaled)
    vocab = arrange(pieces, size, unused, prepared.normalization)
    statistics = {
        **prepared.statistics,
        "words_learned_from": int(np.count_nonzero(scaled)),
        "words_scaled_away": int(np.count_nonzero(scaled == 0)),
        "count_scale": scale,
        "merges": len(pieces) - len(prepared.first),
        "unused": len(vocab.unused),
    }
    return Learned(vocab, statistics)


def prepare(counts: pa.Table, size: int, *, unused: int, lowercase: bool, alphabet: int, any_size: bool) -> Prepared:
    """Check the size, choose the alphabet, and leave out words that are too long or not made of it.

    Raises `errors.RecipeInvalid` where the size is no multiple of 64 or too small for specials, slots and characters.
    """
    check_size(size, allow_any_size=any_size)
    normalization = Normalization(lowercase)
    ordered = counts.take(pc.sort_indices(counts["word"]))
    short = ordered.filter(pc.less_equal(pc.utf8_length(ordered["word"]), MAX_WORD_CHARACTERS))
    characters, kept = _limit_alphabet(short, alphabet)
    inner = [f"##{c}" for c in characters if _goes_inside(c, normalization)]
    statistics: dict[str, float] = {
        "characters": len(characters),
        "words_too_long": len(counts) - len(short),
        "words_outside_alphabet": len(short) - len(kept),
    }
    room = _room(size, unused, len(characters) + len(inner))
    return Prepared(kept, characters, inner, room, normalization, statistics)


def scale_counts(counts: U64, bound: int) -> tuple[I64, float]:
    """Counts scaled down in proportion to a sum of ``bound`` where theirs is larger, and the factor.

    Running totals are rounded, not single counts: a word gets its share rounded down or up, and a hundred words that
    are due a hundredth each get one occurrence together. Keeping every rare word at one occurrence instead would give
    rare words far too much weight: on 100 MB of text fed as 1 M occurrences, 70 % of the tokens were those learned
    from full counts, against 90 % this way.

    >>> scale_counts(np.array([90, 3, 3, 4], np.uint64), 10)[0].tolist()
    [9, 0, 0, 1]
    """
    totals = np.cumsum(counts.astype(np.float64))  # exact below 2**53 occurrences
    if not len(totals) or totals[-1] <= bound:
        return counts.astype(np.int64), 1.0
    factor = bound / float(totals[-1])
    running = np.floor(totals * factor).astype(np.int64)
    return running - np.append(0, running[:-1]), factor


def _limit_alphabet(counts: pa.Table, limit: int) -> tuple[list[str], pa.Table]:
    """The most frequent characters, sorted, and the words that are made of them alone."""
    sums = []
    for part in _slices(counts):
        points, owners = characters_of(part)
        # Arrow adds up in 64-bit integers; NumPy's weighted bincount would use floats.
        table = pa.table({"point": points, "count": part["count"].take(pa.array(owners))})
        sums.append(table.group_by("point", use_threads=False).aggregate([("count", "sum")]))
    if not sums:
        return [], counts
    totals = pa.concat_tables(sums).group_by("point", use_threads=False).aggregate([("count_sum", "sum")])
    order = pc.sort_indices(totals, sort_keys=[("count_sum_sum", "descending"), ("point", "ascending")])
    chosen = np.sort(totals["point"].take(order.slice(0, limit)).to_numpy())
    inside = []
    for part in _slices(counts):
        points, owners = characters_of(part)
        foreign = np.bincount(owners[~np.isin(points, chosen)], minlength=len(part))
        inside.append(part.filter(pa.array(foreign == 0)))
    return [chr(point) for point in chosen.tolist()], pa.concat_tables(inside)


def _slices(counts: pa.Table) -> list[pa.Table]:
    return [counts.slice(row, _SLICE_WORDS) for row in range(0, len(counts), _SLICE_WORDS)]


def characters_of(counts: pa.Table) -> tuple[U32, I64]:
    """Code points of all words, one after another, and the number of the word each belongs to."""
    words = counts["word"]
    points = np.frombuffer("".join(words.to_pylist()).encode("utf-32-le"), np.uint32)
    return points, np.repeat(np.arange(len(words)), pc.utf8_length(words).to_numpy())


def _room(size: int, unused: int, characters: int) -> int:
    """Ids left for pieces. Raises where the characters alone do not fit."""
    room = size - _SPECIALS - unused
    if room < characters:
        what = f"{size:,} is less than the {size - room + characters:,} of characters, specials and unused slots"
        raise errors.RecipeInvalid("vocab.size", what, "raise --size, or lower vocab.alphabet (--alphabet) or --unused")
    return room


def _goes_inside(character: str, normalization: Normalization) -> bool:
    return len(splitter_for(normalization).words_of(f"a{character}a")) == 1


def _train(prepared: Prepared, counts: I64) -> list[str]:
    from tokenizers import Tokenizer, models, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trainer = trainers.WordPieceTrainer(
        vocab_size=prepared.room,
        min_frequency=1,
        special_tokens=prepared.first,
        continuing_subword_prefix="##",
        show_progress=False,
    )
    tokenizer.train_from_iterator(repeated(prepared.kept["word"].to_pylist(), counts), trainer)
    ids = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(ids, key=ids.__getitem__)


def repeated(words: list[str], counts: I64) -> Iterator[list[str]]:
    """Each word as often as it counts, in lists of limited length: the trainer counts what it reads."""
    most = 1 << 16
    for word, count in zip(words, counts.tolist(), strict=True):
        for begin in range(0, count, most):
            yield [word] * min(most, count - begin)
