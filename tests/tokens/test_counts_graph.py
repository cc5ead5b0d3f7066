"""Words are counted over all units of a run and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusforge.beam.engine import BeamEngine
from corpusforge.progress import Silent
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.counts import count_units, count_words, read_blocks, select_counts
from tests.beam.documents_on_disk import write_units
from tests.beam.stage_folders import ROWS


@pytest.mark.slow
@pytest.mark.parametrize(("cuts", "workers"), [([], 1), ([1, 44, 0], 2)])
def test_words_are_counted_over_all_units(cuts: list[int], workers: int, tmp_path: Path) -> None:
    units = write_units(tmp_path, ROWS, cuts)
    paths = count_units(BeamEngine(workers), BertSegmentation(), units, str(tmp_path / "out"), Silent())
    counts, statistics = select_counts(read_blocks(paths), min_count=1, max_words=10**6)
    assert counts.equals(count_words(ROWS.column("text")))
    assert statistics["words"] > 5000
