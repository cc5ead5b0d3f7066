"""Datasets: a local folder, streamed, resumed; and errors without the package or the dataset."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from corpusforge import errors
from corpusforge.documents.plan import plan_units
from tests.documents.raw_inputs import read_all


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "corpus"
    folder.mkdir()
    for part in range(3):
        lines = [json.dumps({"text": f"{part} {i}" if i != 5 else None, "url": "u"}) for i in range(700)]
        (folder / f"train-{part}.jsonl").write_text("\n".join(lines))
    return folder


def test_a_local_folder_streamed_and_resumed(dataset: Path) -> None:
    whole = read_all(dataset, format="hub")
    assert whole.records == 2100
    assert whole.reasons == ["record:no-text"] * 3
    assert whole.documents[0] | {"id": ""} == whole.documents[0] | {
        "id": "",
        "source": "corpus",
        "text": "0 0",
        "position": 0,
    }
    for skip in (1, 700, 1555, 2100):
        rest = read_all(dataset, format="hub", skip=skip)
        assert rest.records == 2100 - skip
        assert rest.documents == whole.documents[len(whole.documents) - len(rest.documents) :]


def test_a_missing_column_is_named(dataset: Path) -> None:
    with pytest.raises(errors.InputUnreadable, match=r"no column 'body'.*text, url"):
        read_all(dataset, format="hub", text_column="body")


def test_an_unknown_split_or_dataset_is_an_error(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.InputMissing):
        read_all(dataset, format="hub", hub_split="nowhere")
    with pytest.raises(errors.InputMissing):
        read_all(dataset.parent / "missing", format="hub")


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(errors.ExtraMissing, match="pip install 'corpusforge\\[hub\\]'"):
        read_all("owner/name", format="hub")


def test_a_dataset_is_one_unit() -> None:
    units = plan_units(["owner/a", "owner/b"], format="hub")
    assert [(u.number, u.parts[0].source) for u in units] == [(0, "owner/a"), (1, "owner/b")]
