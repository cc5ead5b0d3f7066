"""Vocabulary folders in transformers 4: the same checks as in 5.

Runs where transformers 4 is installed (``benchmarks/requirements-transformers4.txt`` beside CorpusForge).
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="needs benchmarks/requirements-transformers4.txt")

import transformers

from corpusforge.errors import ManifestInvalid
from corpusforge.sections.vocab import FAMILIES
from corpusforge.tokens.families import adopt_vocab, load_vocab
from tests.tokens import adopted_folders
from tests.tokens.transformers_folders import check_folder

OLD = transformers.__version__.startswith("4.")
pytestmark = pytest.mark.skipif(not OLD, reason="needs benchmarks/requirements-transformers4.txt")


@pytest.mark.parametrize("family", FAMILIES)
def test_folders_load_in_4(family: str, tmp_path: Path) -> None:
    check_folder(family, tmp_path)


@pytest.mark.parametrize("kind", adopted_folders.KINDS)
def test_folders_of_4_are_adopted(kind: str, tmp_path: Path) -> None:
    adopted_folders.check(kind, tmp_path)


def test_a_folder_converted_by_4_is_another_family_and_named(tmp_path: Path) -> None:
    adopted_folders.converted_by_4(tmp_path)
    with pytest.raises(ManifestInvalid, match=r"another kind: .*Metaspace"):
        load_vocab(str(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    assert adopt_vocab(str(tmp_path)).size == 64
