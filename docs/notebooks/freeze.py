"""Run the notebooks of this folder and save them with their output, which sites show without running anything.

    python docs/notebooks/freeze.py [--chromium PATH]

Plots are saved as plotly's data, which notebooks draw, and as an SVG picture, which Chromium draws here, for sites that
run no scripts. Widgets are left out: without a kernel they show nothing.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from plotly.offline import get_plotlyjs

HERE = Path(__file__).resolve().parent
PLOT = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
WIDTH = 760
"""Pixels of a picture."""


def freeze(path: Path, chromium: str) -> None:
    """Run a notebook and save it with its output."""
    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, record_timing=False, resources=where).execute()
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
        for data in (output.data for output in cell.outputs if PLOT in output.get("data", {})):
            data["image/svg+xml"] = picture(data[PLOT], chromium)
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


def picture(figure: dict[str, Any], chromium: str) -> str:
    """A plotly figure as SVG."""
    given = json.dumps(figure).replace("<", "\\u003c")
    height = figure["layout"].get("height", 450)
    draw = f"Plotly.toImage({given}, {{format: 'svg', width: {WIDTH}, height: {height}}})"
    show = "url => { document.body.textContent = decodeURIComponent(url.slice(url.indexOf(',') + 1)) }"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "plot.html")
        script = f"<script>{get_plotlyjs()}</script><script>{draw}.then({show})</script>"
        page.write_text(f'<meta charset="utf-8"><body>{script}</body>', "utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
        done = subprocess.run([chromium, *flags, page.as_uri()], capture_output=True, text=True, check=True)
    body = done.stdout.partition("<body>")[2].rpartition("</body>")[0]
    drawn = html.unescape(body).strip()
    if not drawn.startswith("<svg"):
        raise SystemExit(f"{chromium} drew no picture: {body[:200]}")
    return drawn


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", default="chromium", help="Chromium or Chrome [chromium]")
    options = parser.parse_args()
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"
    for each in sorted(HERE.glob("*.ipynb")):
        freeze(each, options.chromium)
        print(f"{each.name}: {each.stat().st_size / 1000:.0f} kB")
