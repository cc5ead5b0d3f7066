"""Headers of Parquet pages: against Arrow's metadata of the whole column, and for arbitrary bytes."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.documents import parquet
from corpusforge.documents.parquet import DICTIONARY, BrokenHeader, claimed_needs, needs_of, pages_of

TEXTS = [f"Row {i % 700} " + "x" * (i % 300) for i in range(20_000)]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_add_up_to_the_column(version: str, compression: str, dictionary: bool) -> None:
    file = io.BytesIO()
    options: dict[str, Any] = {"data_page_version": version, "compression": compression, "use_dictionary": dictionary}
    table = pa.table({"n": pa.array(range(20_000)), "text": pa.array([None, *TEXTS[1:]])})
    pq.write_table(table, file, data_page_size=50_000, write_batch_size=100, row_group_size=15_000, **options)
    metadata = pq.ParquetFile(file).metadata
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(1)
        pages = list(pages_of(file, chunk))
        assert sum(page.values for page in pages if page.kind != DICTIONARY) == chunk.num_values
        unpacked = sum(page.unpacked for page in pages)
        assert 0 <= chunk.total_uncompressed_size - unpacked <= 700 * len(pages)  # the headers themselves
        assert (pages[0].kind == DICTIONARY) == dictionary
        needs = needs_of(file, [chunk])
        assert needs.largest == max(page.unpacked for page in pages)
        assert needs.dictionary == (pages[0].unpacked if dictionary else 0)
        assert needs.row == max(p.unpacked // max(1, p.values) for p in pages if p.kind != DICTIONARY)
        assert claimed_needs([chunk]).row == chunk.total_uncompressed_size // chunk.num_values


def test_long_statistics_in_a_header() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"text": ["a" * 100_000, "b" * 100_000]}), file, use_dictionary=False)
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(0)
    assert [page.values for page in pages_of(file, chunk)] == [2]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_header_or_none(data: bytes) -> None:
    try:
        fields, length = parquet._read_header(io.BytesIO(data), 0)
    except BrokenHeader:
        return
    assert 0 < length <= len(data)
    assert isinstance(fields, dict)


def test_a_header_that_never_ends() -> None:
    with pytest.raises(BrokenHeader):
        parquet._read_header(io.BytesIO(b"\x1c" * 10_000), 0)  # structures in structures
    with pytest.raises(BrokenHeader):
        parquet._read_header(io.BytesIO(b"\x18\xff\xff\xff\xff\x0f"), 0)  # 4 GB of text
