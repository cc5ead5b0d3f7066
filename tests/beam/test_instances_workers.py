"""build-instances with one, two and five workers: equal digests of every format, with masks of every unit."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusforge import sections
from corpusforge.beam.engine import BeamEngine
from corpusforge.instances import build
from corpusforge.instances.build import EncodeWork, token_units
from corpusforge.instances.negatives import NegativeSettings
from corpusforge.progress import Silent
from corpusforge.sections import Instances
from corpusforge.tokens.counts import count_words
from corpusforge.tokens.wordpiece import learn
from tests.beam.documents_on_disk import documents, write_units
from tests.beam.test_stage_graphs import content

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
    learned = learn(count_words(ROWS.column("text")), sections.Vocab(size=512, unused=16)).vocab
    units, seen = write_units(tmp_path, ROWS, CUTS), []
    for workers in (1, 2, 5):
        out = tmp_path / str(workers)
        build.run(BeamEngine(workers), section, 7, learned, units, str(out), Silent())
        seen.append([content(out, table) for table in ("train", "heldout")])
    assert seen[0] == seen[1] == seen[2]
    assert min(rows for _, rows in seen[0]) > 0


class Elsewhere(BeamEngine):
    """A runner that is not this machine's, played by the local one."""

    is_local = False  # type: ignore[assignment]


def test_negatives_by_the_graph_and_without(tmp_path: Path) -> None:
    learned = learn(count_words(ROWS.column("text")), sections.Vocab(size=512, unused=16)).vocab
    seen = []
    for engine in (BeamEngine(1), Elsewhere(1)):
        scratch = str(tmp_path / type(engine).__name__)
        for unit in write_units(tmp_path, ROWS, CUTS):
            EncodeWork(scratch, learned)(unit, lambda _: None)
        settings = NegativeSettings(7, 0.2, 1 << 20)
        folder = build.gather_negatives(engine, token_units(scratch), scratch, learned.size, settings, Silent())
        seen.append([(Path(folder) / f"{split}.arrow").read_bytes() for split in ("train", "heldout")])
    assert seen[0] == seen[1]
    assert min(map(len, seen[0])) > 1000
