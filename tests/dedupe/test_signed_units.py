"""Signed items as they are stored and read back."""

from __future__ import annotations

import random
from pathlib import Path

from corpusforge import shards
from corpusforge.dedupe import signed_units
from tests.dedupe.in_process import near_spans, write_units
from tests.dedupe.near_texts import SPANS, passage


def test_items_are_opened_again_if_the_file_was_replaced(tmp_path: Path) -> None:
    dice = random.Random(9)
    for text in (passage(dice, 4), passage(dice, 9)):
        units = write_units(tmp_path / "in", [[("a", " ".join(text))]])
        near_spans(units, tmp_path / "out", SPANS, 0.8, cut={})
        (part,) = signed_units.open_items(str(tmp_path / "out/scratch"), 0).parts
        assert len(part.hashes) == len(text)
        shards.remove(str(tmp_path / "out"))
