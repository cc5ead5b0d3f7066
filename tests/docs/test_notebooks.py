"""The notebooks run and give what they show, and are saved with output that needs nothing to be shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
PLOT, PICTURE = "application/vnd.plotly.v1+json", "image/svg+xml"
WIDGET = "application/vnd.jupyter.widget-view+json"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


def _run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **values: str) -> dict[str, Any]:
    """Run a copy of a notebook in an empty folder; returns the values of these expressions at its end."""
    nbclient = pytest.importorskip("nbclient")
    for package in ("plotly", "transformers", "pandas", "ipykernel", "torch", "apache_beam"):
        pytest.importorskip(package)
    monkeypatch.setenv("PLOTLY_RENDERER", "plotly_mimetype")
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent.parent))
    notebook = nbformat.read(FOLDER / name, 4)
    shown = ", ".join(f"{json.dumps(key)}: {expression}" for key, expression in values.items())
    notebook.cells.append(nbformat.v4.new_code_cell(f"import json; print(json.dumps({{{shown}}}))"))
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    assert not list(folder.iterdir())
    result: dict[str, Any] = json.loads(notebook.cells[-1].outputs[0].text)
    return result


@pytest.mark.slow
def test_look_before_cleaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = _run(
        "look_before_cleaning.ipynb",
        tmp_path,
        monkeypatch,
        steps="[step['documents'] for step in clean.funnel]",
        same="preview.counts == clean.counts",
        interviews="len(own.dropped('filter:prose:interview', n=100))",
        examples="len(examples)",
        repeated="duplicates.counts['span:repeated']['rows']",
    )
    assert values.pop("repeated") > 10
    assert values == {"steps": [169, 140, 133, 129], "same": True, "interviews": 3, "examples": 12}


@pytest.mark.slow
def test_train_and_fill_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = _run(
        "train_and_fill_masks.ipynb",
        tmp_path,
        monkeypatch,
        tables="{name: instances.table(name).num_rows for name in instances.tables}",
        losses="[model.log[0]['loss'], model.manifest.statistics['heldout_loss'], unigram]",
        filled="[fill(question)[0]['token_str'] for question in questions]",
        correct="correct",
    )
    assert sum(values["tables"].values()) == 160
    first, last, unigram = values["losses"]
    assert last < unigram - 1 < first
    assert values["filled"][0] == "themselves" and values["filled"][2] == "ever"
    assert values["correct"] > 0.8


@every_notebook
def test_output_is_saved_and_needs_nothing_to_be_shown(name: str) -> None:
    path = FOLDER / name
    assert path.stat().st_size < 300_000, "run docs/notebooks/freeze.py"
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run docs/notebooks/freeze.py"
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    plots = [output.data for output in outputs if PLOT in output.get("data", {})]
    assert plots and all(data[PICTURE].startswith("<svg") for data in plots)
    assert not [output for output in outputs if WIDGET in output.get("data", {})] and "widgets" not in notebook.metadata
    paths = re.findall(r"/(?:home|root|tmp|work|Users|private|var)/\w+", path.read_text("utf-8"))
    assert not paths


@every_notebook
def test_links_of_notebooks_exist(name: str) -> None:
    text = "\n".join(cell.source for cell in nbformat.read(FOLDER / name, 4).cells if cell.cell_type == "markdown")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (FOLDER / link).exists(), link
