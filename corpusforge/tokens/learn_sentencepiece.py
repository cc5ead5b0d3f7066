"""Learns a SentencePiece vocabulary from a table of word counts, the same one in every run.

In: COUNTS (word, count) of normalised words. Out: a `Vocab` of exactly the size asked for. The learning is done by the
`sentencepiece` package, which reads words with their counts (``input_format="tsv"``) and counts the words of text
itself first, so that bpe's result is that of reading the text. One thing it takes from the lines, not from their
counts: how often a string occurs when the first pieces of unigram are proposed (a string seen once is none). So a word
stands on several lines that share its count: all of its occurrences in a small corpus, a share in a large one, two at
least. Unigram's result is then that of reading sorted words, one a line, to the last piece; from whole sentences the
library makes 95 % of the same pieces, and another order of lines moves 1 % of them too.

Text without spaces (Chinese, Japanese) makes long words that rarely recur; beyond a bound they are sampled by hash, and
the statistics say how many.
"""

from __future__ import annotations

import base64
import functools
import io
import re
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors, seeds
from corpusforge.tokens import sentencepiece_file as files
from corpusforge.tokens.counts import COUNTS, merge_tables, pack_counts, read_counts, select_counts
from corpusforge.tokens.learn_wordpiece import Learned, scale_counts
from corpusforge.tokens.pieces import SPACE, PieceCutting
from corpusforge.tokens.sentencepiece_family import NAMES, arrange
from corpusforge.tokens.vocab import check_size

FED_OCCURRENCES = 1 << 40
"""Counts are added up in floats of 32 bits by the trainer; far below 64-bit overflow, and no word is read twice."""

MAX_WORD_BYTES = 4192
"""Longer words are left out and counted (sentencepiece's max_sentence_length, which skips such lines silently)."""

SEGMENTED_BYTES = 64
"""Longer words count as text without spaces; of English words 1 in 100,000 is longer."""

SAMPLED_BYTES = 64 << 20
"""Words of text without spaces the trainer is given at most: 20 M characters of Chinese."""

LINE_BYTES = 32 << 20
"""Occurrences of words unigram's first pieces are counted on, about; the trainer's suffix array takes 20 times that."""

COVERAGE = {"unigram": 0.99995, "bpe": 0.9995}
"""Share of characters with a piece: ALBERT's (google-research/albert, README), and sentencepiece's default."""

THREADS = 16
"""The trainer adds floats up by thread, so its result depends on their number: always its default, on any machine."""


def learn(
    counts: pa.Table,
    size: int,
    *,
    algorithm: str = "unigram",
    cutting: PieceCutting | None = None,
    unused: int = 128,
    coverage: float = 0.0,
    allow_any_size: bool = False,
) -> Learned:
    """Learn a vocabulary of ``size`` ids, specials and at least ``unused`` slots among them.

    ``algorithm``: "unigram" or "bpe"; ``coverage``: share of characters with a piece of their own, 0: `COVERAGE`.
    Where the words do not suffice to fill the size, more [unusedN] slots do.

    Raises `errors.RecipeInvalid` where the size is no multiple of 64 or too small.
    """
    check_size(size, allow_any_size=allow_any_size)
    fed, left_out = _fed(counts)
    if size - unused <= len(NAMES):
        raise _too_small(size, len(NAMES) + unused + 1)
    if not fed:
        raise errors.InputMissing("words", "there are none to learn from", "give more text, or lower --min-count")
    lines = _lines(fed, LINE_BYTES if algorithm == "unigram" else 0)
    try:
        model = _train(lines, size - unused, algorithm, coverage or COVERAGE[algorithm])
    except RuntimeError as error:
        raise _refusal(str(error), size, unused) from None
    vocab = arrange(model, size, cutting or PieceCutting())
    statistics = {
        "characters": sum(len(p) == 1 for p, k in zip(model.pieces, model.kinds, strict=True) if k == files.NORMAL),
        "words_learned_from": len(fed),
        **left_out,
        "unused": len(vocab.unused),
    }
    return Learned(vocab, statistics)


def _fed(counts: pa.Table) -> tuple[dict[str, int], dict[str, float]]:
    """Words the trainer is given, in order, with counts that it can add up; and how many it is not given."""
    ordered = counts.take(pc.sort_indices(counts["word"]))
    short = ordered.filter(pc.less_equal(pc.binary_length(ordered["word"]), MAX_WORD_BYTES))
    scaled, scale = scale_counts(short["count"].to_numpy(), FED_OCCURRENCES)
    words = [word.removeprefix(SPACE) for word in short["word"].to_pylist()]
    fed = {word: count for word, count in zip(words, scaled.tolist(), strict=True) if word and count}
    left_out = {
        "words_scaled_away": int(np.count_nonzero(scaled == 0)),
        "words_too_long": len(counts) - len(short),
        "count_scale": scale,
    }
    return fed, left_out


def select(
    blocks: Iterable[bytes], *, min_count: int, max_words: int, sampled_bytes: int = SAMPLED_BYTES
) -> tuple[pa.Table, dict[str, float]]:
    """As `counts.select_counts`, but words of text without spaces are sampled by hash, however rare they are.

    Halving the share whenever they are too many gives the same sample in any order of blocks. Statistics also:
    ``unsegmented_words`` of more than `SEGMENTED_BYTES`, ``unsegmented_share`` of them kept.
    """
    long, share, found = COUNTS.empty_table(), 1.0, 0

    def short_blocks() -> Iterator[bytes]:
        nonlocal long, share, found
        for block in blocks:
            table = read_counts(block)
            longer = pc.greater(pc.binary_length(table["word"]), SEGMENTED_BYTES)
            found += pc.sum(longer).as_py() or 0
            long = _thinned(pa.concat_tables([long, table.filter(longer)]), share)
            while (pc.sum(pc.binary_length(long["word"])).as_py() or 0) > sampled_bytes:
                share /= 2
                long = _thinned(long, share)
            yield from (packed for _, packed in pack_counts(table.filter(pc.invert(longer)), 1))

    short, statistics = select_counts(short_blocks(), min_count=min_count, max_words=max_words)
    both = merge_tables([short, long])
    return both, {**statistics, "unsegmented_words": found, "unsegmented_share": share}


def _thinned(counts: pa.Table, share: float) -> pa.Table:
    if share == 1.0 or not len(counts):
        return counts
    keys = seeds.document_keys(counts["word"].to_pylist())
    return counts.filter(pa.array(seeds.uniforms(0, "sentencepiece-sample", keys) < share)).combine_chunks()


def _lines(counts: dict[str, int], limit: int) -> Iterator[str]:
    """Words with counts, each on as many lines as its share of ``limit`` bytes, two at least; ``limit`` 0: one."""
    total = sum(len(word.encode()) * count for word, count in counts.items())
    share = limit / max(total, 1)
    for word, count in counts.items():
        lines = min(max(round(count * share), 2), count) if limit else 1
        yield f"{word}\t{count - lines + 1}"
        for _ in range(lines - 1):
            yield f"{word}\t1"


def _train(lines: Iterator[str], size: int, algorithm: str, coverage: float) -> files.Model:
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=written,
        input_format="tsv",
        model_type=algorithm,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=coverage,
        normalization_rule_name="identity",  # words are normalised
        max_sentence_length=MAX_WORD_BYTES + 32,
        num_threads=THREADS,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=list(NAMES[2:]),
        minloglevel=2,
    )
    return files.read_model(written.getvalue())


def _refusal(said: str, size: int, unused: int) -> errors.RecipeInvalid:
    """What the library says against a size, in words of our flags.

    >>> print(_refusal("INTERNAL: ... smaller than required_chars. 61 vs 300. Increase vocab_size or ...", 64, 3))
    vocab.size: 64 is less than the 303 of characters, specials and unused slots; raise --size, or lower --coverage or --unused
    """  # noqa: E501
    needed = re.search(r"required_chars\. \d+ vs (\d+)", said)
    if needed:
        return _too_small(size, int(needed[1]) + unused)
    what = f"sentencepiece cannot learn {size:,} ids from this text ({' '.join(said.split())})"
    return errors.RecipeInvalid("vocab.size", what, "raise --size, lower --coverage, or give more text")


def _too_small(size: int, least: int) -> errors.RecipeInvalid:
    what = f"{size:,} is less than the {least:,} of characters, specials and unused slots"
    return errors.RecipeInvalid("vocab.size", what, "raise --size, or lower --coverage or --unused")


@functools.cache
def charsmap_of(rule: str) -> str:
    """The compiled character map of one of the library's rules ("nmt_nfkc", ...), base64."""
    import sentencepiece

    proto = sentencepiece.SentencePieceNormalizer(rule_name=rule).serialized_model_proto()
    return base64.b64encode(files.read_charsmap(proto)).decode()
