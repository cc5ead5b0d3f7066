"""Progress in a notebook: a widget while work is under way, one line afterwards; lines without ipywidgets."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corpusforge.api import bars

nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")

BEGIN = """
from corpusforge.api.bars import LazyBars
bars = LazyBars()
bars.start("clean", 4, "documents")
bars.note("2 dropped")
bars.advance(1)
"""
MOVE = "import time; time.sleep(0.15); bars.advance(2); bars.say('A line.')"
WIDGET = "application/vnd.jupyter.widget-view+json"


def _run(*cells: str) -> Any:
    """The notebook of these cells, with its outputs."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    root = Path(__file__).resolve().parents[2]
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(root)}}).execute()
    return notebook


def _widgets(notebook: Any) -> list[dict[str, Any]]:
    states = notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    return [widget["state"] for widget in states.values()]


def test_a_widget_moves_with_the_work() -> None:
    notebook = _run(BEGIN, MOVE)
    shown, said = notebook.cells[0].outputs[0], notebook.cells[1].outputs[0]
    assert WIDGET in shown.data and said.text == "A line.\n"
    values = {widget["_model_name"]: widget.get("value") for widget in _widgets(notebook)}
    assert values["FloatProgressModel"] == 0.75
    texts = [widget["value"] for widget in _widgets(notebook) if widget["_model_name"] == "LabelModel"]
    assert "clean" in texts and any("3/4 documents" in text and text.endswith("2 dropped") for text in texts)


def test_a_widget_ends_as_one_line() -> None:
    notebook = _run(BEGIN, MOVE, "bars.start('dedupe', 0, 'bytes'); bars.advance(5); bars.finish(); bars.finish()")
    for cell, label in ((notebook.cells[0], "clean"), (notebook.cells[2], "dedupe")):
        (output,) = cell.outputs
        assert list(output.data) == ["text/plain"] and output.data["text/plain"].startswith(f"{label}: ")


def test_without_ipywidgets_a_notebook_has_lines() -> None:
    notebook = _run("import sys; sys.modules['ipywidgets'] = None", BEGIN, MOVE, "bars.finish()")
    lines = [output.data["text/plain"].strip() for cell in notebook.cells for output in cell.outputs]
    assert lines[0] == "A line." and lines[1].startswith("clean: ") and len(lines) == 2


def test_a_terminal_and_a_script_are_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not bars.in_notebook()
    for shell, expected in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=object()), True)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert bars.in_notebook() is expected
