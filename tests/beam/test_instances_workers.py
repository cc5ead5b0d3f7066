"""build-instances with one, two and five workers: equal digests of every format, with masks of every unit."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents_on_disk import documents, write_units
from test_stage_graphs import content

from corpusforge.beam import instances
from corpusforge.beam.engine import Engine
from corpusforge.progress import Silent
from corpusforge.sections import Instances
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.learn_wordpiece import learn_wordpiece

ROWS = documents(90)
CUTS = [15, 1, 20, 10, 14]
"""Six units: as many as the widest pool, and one more."""

SECTIONS = [
    Instances(format="full-sentences", length=32, heldout=0.2, masking="static", mask_unit="span"),
    Instances(format="sentence-pair", length=32, heldout=0.2, masking="duplicated", copies=2, mask_unit="whole-word"),
    Instances(format="sop", length=32, heldout=0.2, masking="duplicated", copies=2, mask_unit="ngram"),
]


@pytest.mark.parametrize(
    "section",
    [pytest.param(s, id=s.format, marks=[pytest.mark.slow] * (s.format != "sentence-pair")) for s in SECTIONS],
)
def test_workers_change_nothing(section: Instances, tmp_path: Path) -> None:
    learned = learn_wordpiece(count_words(ROWS.column("text")), 512, unused=16)
    units, seen = write_units(tmp_path, ROWS, CUTS), []
    for workers in (1, 2, 5):
        out = tmp_path / str(workers)
        instances.run(Engine(workers), section, 7, learned, units, str(out), Silent())
        seen.append([content(out, table) for table in ("train", "heldout")])
    assert seen[0] == seen[1] == seen[2]
    assert min(rows for _, rows in seen[0]) > 0
