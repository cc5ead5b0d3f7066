"""sentence-pair: single natural sentences, next or from elsewhere."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.source import read_source
from tests.instances.test_segment_pair import distinct
from tests.instances.token_batches import SPECIALS, all_negatives, random_corpus, tokens_of, unmasked

STRUCTURES = st.lists(st.lists(st.integers(1, 9), max_size=12), min_size=2, max_size=8)


def builder(tokens, length: int = 32, **changes) -> Builder:
    return Builder(BuildSettings(SPECIALS, "sentence-pair", length, **changes), all_negatives(tokens))


@given(structure=STRUCTURES, seed=st.integers(0, 1000), masks=st.booleans())
def test_both_are_sentences_and_labels_are_true(structure, seed, masks):
    tokens = distinct(tokens_of(structure))
    batch = builder(tokens, seed=seed, stored_masks=masks).build(tokens)  # two sentences always fit
    source = read_source(tokens)
    sentences = {
        int(start) + 1000: (int(stop) + 1000, at)
        for at, (start, stop) in enumerate(zip(source.starts, source.ends, strict=True))
    }
    home = source.documents
    first_of_a = {}
    for ids, row in zip(unmasked(batch), batch.to_pylist(), strict=True):
        a, b = ids[1 : row["segment_lengths"][0] - 1], ids[row["segment_lengths"][0] : -1]
        (a_stop, a_at), (b_stop, b_at) = sentences[a[0]], sentences[b[0]]
        assert (a_stop, b_stop) == (a[-1] + 1, b[-1] + 1)
        assert int(source.keys[home[a_at]]) == row["document"]
        filled = np.count_nonzero(np.diff(source.offsets)) > 1
        assert (
            (b_at == a_at + 1 and home[a_at] == home[b_at])
            if row["pair_label"] == 0
            else (home[a_at] != home[b_at] or not filled)
        )
        first_of_a.setdefault(int(home[a_at]), set()).update({a_at} | ({b_at} if row["pair_label"] == 0 else set()))
    for document, (first, behind) in enumerate(zip(source.offsets[:-1], source.offsets[1:], strict=True)):
        assert first_of_a.get(document, set()) == set(range(first, behind))  # every sentence stands somewhere


def test_labels_are_fair_coins():
    tokens = random_corpus(3000)
    built = list(builder(tokens, 128).batches(tokens))
    found = {k: sum(b.statistics[k] for b in built) for k in ("pairs_drawn", "pairs_drawn_random", "pairs_forced")}
    assert found["pairs_drawn"] > 20_000
    assert abs(2 * found["pairs_drawn_random"] - found["pairs_drawn"]) < 5 * math.sqrt(found["pairs_drawn"])
    single = np.count_nonzero(np.diff(read_source(tokens).offsets) == 1)
    assert found["pairs_forced"] == single


def test_long_sentences_are_truncated():
    tokens = tokens_of([[100, 90, 3], [80, 70]])
    batch = builder(tokens, 32).build(tokens)
    assert max(batch.column("length").to_pylist()) == 32


def test_copies_draw_other_pairs():
    tokens = random_corpus(50)
    ours = builder(tokens, 128, stored_masks=True)
    assert unmasked(ours.build(tokens, 0)) != unmasked(ours.build(tokens, 1))
    kept = builder(tokens, 128, stored_masks=True, copies_redraw="masks")
    assert unmasked(kept.build(tokens, 0)) == unmasked(kept.build(tokens, 1))
