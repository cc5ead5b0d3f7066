"""Folders of every family in the installed `transformers`, and folders of its classes adopted."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers")

from corpusforge.sections.vocab import FAMILIES
from tests.tokens import adopted_folders
from tests.tokens.transformers_folders import check_folder


@pytest.mark.parametrize("family", FAMILIES)
def test_folders_load(family: str, tmp_path: Path) -> None:
    check_folder(family, tmp_path)


@pytest.mark.parametrize("kind", adopted_folders.KINDS)
def test_folders_are_adopted(kind: str, tmp_path: Path) -> None:
    adopted_folders.check(kind, tmp_path)
