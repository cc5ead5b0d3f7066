"""Families: the table is complete and matches the docs; folders are read, or refused with a reason."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from corpusforge.errors import InputMissing, ManifestInvalid
from corpusforge.sections.vocab import FAMILIES
from corpusforge.tokens.families import adopt_vocab, load_vocab
from tests.tokens.small_vocabularies import of_family
from tests.tokens.test_vocab import edit, vocabulary, write

DOCS = Path(__file__).resolve().parents[2] / "docs" / "vocabularies.md"


def test_the_docs_list_every_family() -> None:
    rows = re.findall(r"^\| `([a-z][a-z-]*)` \|", DOCS.read_text("utf-8"), re.M)
    assert rows[: len(FAMILIES)] == list(FAMILIES)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_modules_have_what_families_need(name: str) -> None:
    row = FAMILIES[name]
    family, learner = (
        importlib.import_module(f"corpusforge.tokens.{name}") for name in (row.module, row.learner or row.module)
    )
    assert callable(learner.learn) and callable(family.segmentation_of)
    assert len(family.FEWEST) == 2 and len(family.NAMES) == 5
    assert callable(family.from_json) and callable(family.from_files)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_folders_hold_the_files_of_the_family(name: str) -> None:
    shared = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    module = importlib.import_module(f"corpusforge.tokens.{FAMILIES[name].module}")
    assert set(of_family(name).save_files()) - shared == set(module.FILES)


def test_adopting_a_multiple_of_64_adds_nothing(tmp_path: Path) -> None:
    vocab = vocabulary()
    assert adopt_vocab(str(write(vocab, tmp_path / "v"))) == vocab


def test_special_tokens_of_other_names(tmp_path: Path) -> None:
    vocab = vocabulary(3, 64)
    names = {"[MASK]": "<mask>", "[CLS]": "<s>"}
    renamed = dataclasses.replace(vocab, tokens=tuple(names.get(t, t) for t in vocab.tokens))
    assert load_vocab(str(write(renamed, tmp_path / "v"))) == renamed


def test_another_family_is_named(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "a")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ManifestInvalid, match="model WordLevel"):
        load_vocab(str(tmp_path))


def test_missing_and_broken_folders(tmp_path: Path) -> None:
    with pytest.raises(ManifestInvalid, match="no tokenizer"):
        load_vocab(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{", "utf-8")
    with pytest.raises(ManifestInvalid, match="no valid JSON"):
        load_vocab(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    with pytest.raises(ManifestInvalid, match="unreadable tokenizer"):
        load_vocab(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("[]", "utf-8")
    with pytest.raises(ManifestInvalid, match="unreadable tokenizer"):
        load_vocab(str(tmp_path))


def test_broken_ids(tmp_path: Path) -> None:
    folder = edit(write(vocabulary(), tmp_path / "v"), lambda raw: raw["model"]["vocab"].update(extra=4711))
    with pytest.raises(ManifestInvalid, match="holes"):
        load_vocab(str(folder))


def test_missing_specials(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("a\nb\n", "utf-8")
    with pytest.raises(ManifestInvalid, match=r"\[PAD\]"):
        load_vocab(str(tmp_path))


def test_ordinary_added_words_are_refused(tmp_path: Path) -> None:
    word = {"id": 128, "content": "covid", "special": False}
    folder = edit(write(vocabulary(), tmp_path / "v"), lambda raw: raw["added_tokens"].append(word))
    with pytest.raises(ManifestInvalid, match="covid"):
        load_vocab(str(folder))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match="nope: no such folder; check the path"):
        load_vocab(f"{tmp_path}/nope")
    with pytest.raises(ManifestInvalid, match="no tokenizer"):
        adopt_vocab(str(tmp_path))


def test_folders_at_urls(tmp_path: Path) -> None:
    vocab = vocabulary()
    assert load_vocab(f"file://{write(vocab, tmp_path / 'v')}/") == vocab
    with pytest.raises(ManifestInvalid, match="no tokenizer"):
        load_vocab(f"file://{tmp_path}/nowhere")
