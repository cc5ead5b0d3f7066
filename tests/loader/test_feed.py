"""The feed: results in order for any number of threads, errors where they belong, nothing left running."""

from __future__ import annotations

import threading
import time

import pytest

from corpusforge.loader.feed import Feed


def slow_square(number: int) -> int:
    time.sleep(0.003 if number % 3 else 0.0)
    return number * number


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order(threads: int) -> None:
    with Feed(slow_square, 3, 30, threads=threads) as feed:
        assert list(feed) == [n * n for n in range(3, 30)]
        with pytest.raises(IndexError):
            feed.next()
        assert feed.waited >= 0
    with Feed(slow_square, 3, 3) as feed:
        assert list(feed) == []


def test_no_end_and_no_thread_left_behind() -> None:
    before = threading.active_count()
    made = []
    with Feed(lambda n: made.append(n) or n, 0, None, threads=2, ahead=4) as feed:
        assert [feed.next() for _ in range(10)] == list(range(10))
    assert threading.active_count() == before
    assert len(made) <= 10 + 4 + 1  # not more than it may prepare


def test_an_error_comes_when_its_turn_comes() -> None:
    def make(number: int) -> int:
        if number == 2:
            raise KeyboardInterrupt
        return number

    with Feed(make, 0, 9, threads=3) as feed:
        assert [feed.next(), feed.next()] == [0, 1]
        with pytest.raises(KeyboardInterrupt):
            feed.next()
        assert feed.next() == 3
