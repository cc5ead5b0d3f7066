"""Older copies of a URL against the choice made one record at a time."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.clean import url_duplicates
from corpusforge.documents.records import document_id
from tests.oracles import c4_urls

URLS = st.one_of(
    st.none(), st.sampled_from(["http://a.org/", "https://www.a.org", "http://b.org", "c.org", "http://", ""])
)
CONTENTS = st.integers(0, 2)
TIMES = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([-62_135_596_800, 253_402_300_799]))
Record = tuple[int, str | None, int | None, int]
RECORDS = st.lists(st.tuples(st.integers(0, 3), URLS, TIMES, CONTENTS), max_size=30)


def expected(records: list[Record]) -> dict[str, str]:
    """{id of an older copy: id of the newest}."""
    newest: dict[str, tuple[float, int, str]] = {}
    seen = []
    for i, (unit, url, time, content) in enumerate(records):
        name = document_id(f"unit-{unit}", i)
        key = c4_urls.normalised(url) if url else ""
        if key:
            seen.append((key, name))
            rank = (float("inf") if time is None else -float(time), content, name)
            if key not in newest or rank < newest[key]:
                newest[key] = rank
    return {name: newest[key][2] for key, name in seen if newest[key][2] != name}


@given(RECORDS, st.randoms())
def test_as_chosen_one_by_one(records: list[Record], random: object) -> None:
    blocks = []
    for unit in range(4):
        rows = [(document_id(f"unit-{unit}", i), *rest) for i, (u, *rest) in enumerate(records) if u == unit]
        ids, urls, times, contents = zip(*rows, strict=True) if rows else ((), (), (), ())
        kind = pa.timestamp("s", tz="UTC")
        columns = pa.array(ids, pa.string()), pa.array(urls, pa.string()), pa.array(times, kind)
        found = url_duplicates.origins_of(*columns, pa.array(contents, pa.uint64()))
        cut = len(found) // 2
        blocks += [url_duplicates.pack_origins(part, unit) for part in (found.slice(0, cut), found.slice(cut))]
    random.shuffle(blocks)  # type: ignore[attr-defined]
    answers: dict[str, str] = {}
    for unit, packed in url_duplicates.find_older(0, blocks):
        older = url_duplicates.unpack_older([packed])
        names = [document_id(f"unit-{unit}", i) for i in range(len(records))]
        which, kept = older.among(pa.array(names, pa.string()))
        answers |= dict(zip(np.array(names)[which].tolist(), kept.to_pylist(), strict=True))
    assert answers == expected(records)


def test_no_records() -> None:
    assert url_duplicates.find_older(0, []) == []
    which, kept = url_duplicates.unpack_older([]).among(pa.array([document_id("a", 1)]))
    assert not which.any()
    assert len(kept) == 0


def test_ids_pass_through_numbers() -> None:
    ids = pa.array([document_id("a", i) for i in range(100)])
    assert url_duplicates.ids_of(*url_duplicates.id_words(ids)).equals(ids)
    assert url_duplicates.ids_of(*url_duplicates.id_words(ids.slice(3, 5))).equals(ids.slice(3, 5))


def test_times_keep_their_order() -> None:
    moments = [datetime.datetime(y, 1, 1, tzinfo=datetime.UTC) for y in (1, 1969, 1970, 2024, 9999)]
    found = url_duplicates.order_of_times(pa.array([None, *moments], pa.timestamp("s", tz="UTC")))
    assert (np.diff(found.astype(object)) > 0).all()
