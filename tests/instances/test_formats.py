"""The tables of formats and mask units, which settings and help read, are what the room has."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from corpusforge.instances.formats import find_format
from corpusforge.instances.mask_units import find_unit
from corpusforge.sections.instances import FORMATS, MASK_UNITS, Named

PAGE = Path(__file__).resolve().parents[2] / "docs/instances.md"


@pytest.mark.parametrize(("table", "attribute"), [(FORMATS, "FORMATS"), (MASK_UNITS, "UNITS")])
def test_every_module_has_what_the_table_names_and_nothing_else(table: dict[str, Named], attribute: str) -> None:
    for module in {entry.module for entry in table.values()}:
        held = getattr(importlib.import_module(f"corpusforge.instances.{module}"), attribute)
        assert list(held) == [name for name, entry in table.items() if entry.module == module]


def test_settings_of_one_format_or_unit_are_those_it_reads() -> None:
    for name, entry in FORMATS.items():
        assert ("negatives_megabytes" in entry.uses) == find_format(name).needs_negatives
    for name, entry in MASK_UNITS.items():
        assert ("mask_lexicon" in entry.uses) == find_unit(name).needs_words


def test_the_page_lists_them_all() -> None:
    formats, masks = PAGE.read_text("utf-8").split("## Masks")
    assert re.findall(r"^\| `([a-z-]+)` \|", formats, re.MULTILINE) == list(FORMATS)
    assert set(MASK_UNITS) <= set(re.findall(r"^\| `([a-z-]+)` \|", masks, re.MULTILINE))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="no format 'haiku': there are doc-sentences"):
        find_format("haiku")
    with pytest.raises(ValueError, match="no mask unit 'letter': there are token"):
        find_unit("letter")
