"""The table of families: complete, the same as the choices of the setting, and what the docs list."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from corpusforge.sections.vocab import FAMILIES as CHOICES
from corpusforge.tokens.families import FAMILIES
from tests.tokens.small_vocabularies import of_family

DOCS = Path(__file__).resolve().parents[2] / "docs" / "vocabularies.md"


def test_the_table_has_the_choices_of_the_setting() -> None:
    assert list(FAMILIES) == list(CHOICES)


def test_the_docs_list_every_family() -> None:
    rows = re.findall(r"^\| `([a-z][a-z-]*)` \|", DOCS.read_text("utf-8"), re.M)
    assert rows[: len(FAMILIES)] == list(FAMILIES)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_modules_offer_what_the_table_promises(name: str) -> None:
    row = FAMILIES[name]
    learner, family = (importlib.import_module(f"corpusforge.tokens.{module}") for module in (row.learner, row.family))
    assert callable(learner.learn) and callable(family.segmentation_of)
    assert len(family.FEWEST) == 2 and len(family.NAMES) == 5
    assert callable(family.from_json) and callable(family.from_files)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_folders_hold_the_files_of_the_table(name: str) -> None:
    shared = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    assert set(of_family(name).save_files()) - shared == set(FAMILIES[name].files)
