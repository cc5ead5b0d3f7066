"""The house: who may import whom. Rooms by floor; arrows only downwards; heavy libraries only in their rooms."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "corpusforge"

FLOORS = {
    "errors": 1, "seeds": 1, "schemas": 1, "sentences": 1, "text": 1,
    "content": 1, "bundled": 1, "progress": 1, "arrays": 1,
    "shards": 2, "units": 2, "engine": 2, "pool": 2, "sections": 1,
   "recipe": 2, "documents": 2, "clean": 3, "dedupe": 3, "tokens": 2,
    "instances": 3,
    "work": 4, "loader": 4,
    "beam": 5, "trainer": 5, "evaluate": 6,
    "report": 7, "stages": 8, "terminal": 8,
    "cli": 9, "__main__": 10, "__init__": 1,
}  # fmt: skip
"""Floor of every room (a module or a package of corpusforge)."""

SAME_FLOOR = {
    ("tokens", "shards"),
    ("tokens", "units"),
    ("tokens", "engine"),
    ("units", "shards"),
    ("engine", "units"),
    ("pool", "units"),
    ("pool", "shards"),
    ("content", "seeds"),
    ("content", "arrays"),
    ("seeds", "arrays"),
    ("text", "arrays"),
    ("sentences", "arrays"),
    ("sentences", "text"),
    ("sentences", "errors"),
    ("sentences", "bundled"),
    ("stages", "terminal"),
    ("report", "terminal"),
}
"""Arrows that stay on one floor; each is one-way, so no circle can close."""

PURE = ("documents", "instances")
KERNELS = {
    "clean": {path.stem for path in (PACKAGE / "clean").glob("*.py")} - {"work", "url_duplicates", "fetch"},
    "dedupe": {"normalize", "spans", "minhash", "lsh", "clusters", "keep", "cut"},
    "tokens": {path.stem for path in (PACKAGE / "tokens").glob("*.py")} - {"counts", "mask_lexicon"},
}
"""Files of kernels in rooms that hold the units and graphs of a stage too."""
ONLY_IN = {
    "apache_beam": {"beam"},
    "torch": {"trainer", "evaluate"},
    "click": {"cli"},
    "plotly": {"report"},
    "trafilatura": {"documents"},
    "rich": {"terminal", "report", "stages"},
}


def _modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        found.append((parts[0].removesuffix(".py"), path))
    return found


def _imports(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "corpusforge":
                names += [f"corpusforge.{alias.name}" for alias in node.names]
            else:
                names.append(node.module)
    return names


def _rooms_used(path: Path) -> set[str]:
    used = {name.split(".")[1] for name in _imports(path) if name.startswith("corpusforge.")}
    return {room for room in used if room in FLOORS}


@pytest.mark.parametrize(("room", "path"), _modules(), ids=lambda v: v.name if isinstance(v, Path) else v)
def test_arrows_point_downwards(room: str, path: Path) -> None:
    assert room in FLOORS, f"{room} has no floor: add it to FLOORS and to docs/architecture.md"
    for other in _rooms_used(path) - {room}:
        down = FLOORS[other] < FLOORS[room] or (room, other) in SAME_FLOOR
        assert down, f"{path.name} ({room}, floor {FLOORS[room]}) imports {other} (floor {FLOORS[other]})"


@pytest.mark.parametrize(("room", "path"), _modules(), ids=lambda v: v.name if isinstance(v, Path) else v)
def test_libraries_stay_in_their_rooms(room: str, path: Path) -> None:
    for name in _imports(path):
        allowed = ONLY_IN.get(name.split(".")[0])
        assert allowed is None or room in allowed, f"{path} imports {name}"


@pytest.mark.parametrize("path", sorted((PACKAGE / "loader").glob("*.py")), ids=lambda path: path.name)
def test_the_loader_is_free_of_frameworks(path: Path) -> None:
    """Batches are NumPy before the trainer's door, so that any framework can take them."""
    assert not {name.split(".")[0] for name in _imports(path)} & {"torch", "transformers", "datasets"}


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_open_no_output(room: str) -> None:
    """Rooms of kernels take values and give values: no shard writers, no stages, no recipe."""
    forbidden = {"shards", "units", "recipe", "stages", "beam", "trainer", "work", "cli"}
    for name, path in _modules():
        if name == room and path.name != "fetch.py":  # the one place that writes: into the user's cache
            assert not _rooms_used(path) & forbidden, path


@pytest.mark.parametrize("room", KERNELS)
def test_kernels_open_no_output(room: str) -> None:
    for name in KERNELS[room]:
        path = PACKAGE / room / f"{name}.py"
        assert not _rooms_used(path) & {"shards", "units", "engine", "recipe"}, path


def test_help_is_quick_and_light() -> None:
    """--help imports nothing heavy (the half second is checked on the import list, not on a clock)."""
    code = (
        "import sys; from corpusforge.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('apache_beam', 'torch', 'pyarrow', 'numpy', 'plotly', 'datasets') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip().endswith("[]")
