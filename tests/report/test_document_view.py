"""`inspect --document` of instances: by key, by the first digits of a key, by the id of the document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from corpusforge import errors, schemas, seeds
from corpusforge.report.inspect import inspect
from tests.report.handmade_run import write_stage

ID, OTHER = f"{1:032x}", f"{2:032x}"


def shown(path: Path, document: str, **options: Any) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(*inspect(str(path), document=document, **options), sep="\n")
    return console.export_text()


def row(document: str, index: int, copy: int = 0) -> dict[str, Any]:
    """An instance with two masked tokens: the second is left unchanged, the third is another token."""
    key = int(seeds.document_keys([document])[0])
    return {"input_ids": [2, 20, 21, 22, 3], "segment_lengths": [5, 0], "pair_label": None, "document": key,
            "index": index, "copy": copy, "length": 5, "masked_positions": [1, 2],
            "masked_labels": [20, 23]}  # fmt: skip


@pytest.fixture
def instances(run_dir: Path) -> Path:
    schema = schemas.instances_schema(128, masks=True)
    tables = {"train": (schema, [row(ID, 0), row(OTHER, 0), row(ID, 1)]), "heldout": (schema, [])}
    write_stage(run_dir / "instances", "build-instances", tables, kind="arrow")
    return run_dir / "instances"


def test_key_prefix_and_id_find_the_same_rows(instances: Path) -> None:
    key = f"{int(seeds.document_keys([ID])[0]):016x}"
    by_key = shown(instances, key)
    assert by_key.count(f"document {key}, instance") == 2
    assert "instance 0, copy 0" in by_key and "instance 1, copy 0" in by_key
    assert by_key == shown(instances, ID) == shown(instances, key[:8]) == shown(instances / "train", key.upper())
    assert "rows 1 to 1 of 2" in shown(instances, key, rows=1, skip=1)


@pytest.mark.parametrize("name", [f"{3:032x}", "0000", "1234567890123456789", "no hex"])
def test_an_unknown_document_is_an_error(instances: Path, name: str) -> None:
    with pytest.raises(errors.InputMissing, match="32"):
        inspect(str(instances), document=name)


def test_a_prefix_of_two_keys_is_an_error(run_dir: Path) -> None:
    schema = schemas.instances_schema(128, masks=True)
    rows = [{**row(ID, 0), "document": 0xAB << 56}, {**row(ID, 0), "document": (0xAB << 56) + 1}]
    write_stage(run_dir / "instances", "build-instances", {"train": (schema, rows)}, kind="arrow")
    with pytest.raises(errors.InputMissing, match="2 documents have keys that begin so"):
        inspect(str(run_dir / "instances"), document="ab")


def test_masked_tokens_are_marked_without_colors(instances: Path) -> None:
    text = shown(instances, ID, rows=1)
    assert "~another token~" in text and "=left unchanged=" in text
    tokens = text.split("masked\n")[1].split()
    assert tokens[1].startswith("=") and tokens[1].endswith("=") and "(" not in tokens[1]
    assert tokens[2].startswith("~") and "~(" in tokens[2] and tokens[2].endswith(")")
    assert not {"=", "~"} & set(tokens[3])
