"""Groups: connected components against a walk over the graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.dedupe.keep import components

GRAPHS = st.integers(1, 30).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
)


def as_pairs(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


def walk(pairs: list[tuple[int, int]], count: int) -> list[int]:
    """The smallest row that each row reaches, by depth first."""
    neighbors: dict[int, set[int]] = {}
    for a, b in pairs:
        neighbors.setdefault(a, set()).add(b)
        neighbors.setdefault(b, set()).add(a)
    labels = [-1] * count
    for row in range(count):
        stack = [row]
        while stack:
            here = stack.pop()
            if labels[here] < 0:
                labels[here] = row
                stack += neighbors.get(here, ())
    return labels


@given(GRAPHS)
def test_equals_the_walk(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, pairs = graph
    assert components(as_pairs(pairs), count).tolist() == walk(pairs, count)


@given(GRAPHS, st.randoms())
def test_order_and_direction_of_pairs_do_not_matter(graph, random) -> None:  # type: ignore[no-untyped-def]
    count, pairs = graph
    turned = [pair[::-1] if random.random() < 0.5 else pair for pair in pairs]
    random.shuffle(turned)
    assert components(as_pairs(turned), count).tolist() == components(as_pairs(pairs), count).tolist()


@given(GRAPHS)
def test_labels_are_the_smallest_row_of_their_component(graph: tuple[int, list[tuple[int, int]]]) -> None:
    """Every pair is in one class, and every class is named by its smallest row, which is in it."""
    count, pairs = graph
    labels = components(as_pairs(pairs), count)
    assert all(labels[a] == labels[b] for a, b in pairs)
    assert (labels[labels] == labels).all()
    assert (labels <= np.arange(count)).all()


@pytest.mark.parametrize("shape", ["chain", "shuffled chain", "star", "star of the last", "comb", "copies"])
def test_large_shapes_take_few_rounds(shape: str) -> None:
    """A hundred thousand rows in one component of any shape, in well under a second each."""
    count = 100_000
    rows = np.arange(count)
    names = np.random.default_rng(0).permutation(count)
    pairs = {
        "chain": np.stack([rows[:-1], rows[1:]], 1),
        "shuffled chain": np.stack([names[:-1], names[1:]], 1),
        "star": np.stack([np.zeros_like(rows), rows], 1),
        "star of the last": np.stack([np.full_like(rows, count - 1), rows], 1),
        "comb": np.concatenate([np.stack([rows[2::2], rows[:-2:2]], 1), np.stack([rows[::2], rows[1::2]], 1)]),
        "copies": np.concatenate([np.stack([rows // 2, rows], 1)] * 5),
    }[shape]
    assert (components(pairs, count) == 0).all()


def test_no_pairs_and_no_rows() -> None:
    assert components(as_pairs([]), 3).tolist() == [0, 1, 2]
    assert components(as_pairs([]), 0).tolist() == []
