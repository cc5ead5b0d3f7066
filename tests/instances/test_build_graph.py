"""build-instances: equal digests for any cut of the corpus, with one, two and five workers, and by the graph."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from corpusforge import sections
from corpusforge.beam.engine import BeamEngine
from corpusforge.instances import build
from corpusforge.instances.build import EncodeWork, token_units
from corpusforge.instances.negatives import NegativeSettings
from corpusforge.progress import Silent
from corpusforge.sections import Instances
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.counts import CountWork, count_units, count_words, read_blocks, select_counts
from corpusforge.tokens.wordpiece import learn
from tests.beam.documents_on_disk import write_units
from tests.beam.stage_folders import ROWS, Elsewhere, content

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


def test_words_and_tokens_of_another_cut_do_not_count(tmp_path: Path) -> None:
    """A killed run over more units leaves entries of units that this one does not have."""
    (unit,) = write_units(tmp_path, ROWS, [])
    stale = dataclasses.replace(unit, number=3)
    CountWork(str(tmp_path / "words/scratch"), BertSegmentation())(stale, lambda _: None)
    paths = count_units(BeamEngine(1), BertSegmentation(), [unit], str(tmp_path / "words"), Silent())
    counts, _ = select_counts(read_blocks(paths), min_count=1, max_words=10**6)
    assert counts.equals(count_words(ROWS.column("text")))

    learned = learn(counts, sections.Vocab(size=512, unused=16)).vocab
    for name in ("clean", "stale"):
        if name == "stale":
            EncodeWork(str(tmp_path / "stale/scratch"), learned)(stale, lambda _: None)
        section = Instances(format="segment-pair", length=32)
        build.run(BeamEngine(1), section, 7, learned, [unit], str(tmp_path / name), Silent())
    assert content(tmp_path / "stale", "train") == content(tmp_path / "clean", "train")


@pytest.mark.parametrize(
    "section",
    [
        Instances(format="doc-sentences", length=32, heldout=0.2),
        Instances(format="segment-pair", length=32, heldout=0.2, masking="duplicated", copies=2),
    ],
    ids=lambda section: section.format,
)
def test_instances_do_not_depend_on_the_cut(section: Instances, tmp_path: Path) -> None:
    learned = learn(count_words(ROWS.column("text")), sections.Vocab(size=512, unused=16)).vocab
    seen = []
    for name, cuts, workers in (("whole", [], 1), ("cut", [1, 50, 0], 2)):
        units, out = write_units(tmp_path / name, ROWS, cuts), tmp_path / name / "out"
        build.run(BeamEngine(workers), section, 7, learned, units, str(out), Silent())
        seen.append((content(out, "train"), content(out, "heldout")))
    assert seen[0] == seen[1]
    assert seen[0][0][1] > seen[0][1][1] > 0
