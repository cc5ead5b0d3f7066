"""The rules of the house: imports point down, without cycles; heavy libraries stay in their rooms; plain words."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "corpusforge"

FLOORS = {
    1: "errors seeds schemas sections text arrays sentences content progress bundled version",
    2: "shards units pool engine recipe documents clean dedupe tokens",
    3: "instances",
    4: "loader",
    5: "trainer beam",
    6: "evaluate",
    7: "report",
    8: "stages terminal",
    9: "api",
    10: "__init__",
    11: "cli __main__",
}
"""Rooms by floor: modules and packages of corpusforge."""

FLOOR = {room: floor for floor, rooms in FLOORS.items() for room in rooms.split()}

ONLY_IN = {
    "apache_beam": ("beam",),
    "torch": ("trainer", "evaluate"),
    "click": ("cli",),
    "plotly": ("report",),
    "trafilatura": ("documents",),
    "rich": ("terminal", "report", "stages"),
}
"""Heavy libraries, and the rooms or modules that may import them."""

KERNELS = ("documents", "clean", "dedupe", "tokens", "instances")
WRITERS = ("ShardWriter", "atomic_path", "write_bytes", "write_json", "UnitOutput", "sweep", "remove")
"""Functions that open an output."""

HANDLES_UNITS = ("corpusforge.units", "corpusforge.engine")
MAY_WRITE = {
    "corpusforge.clean.fetch": "downloads, into the user's cache",
    "corpusforge.instances.dataset_card": "the card, when the stage is complete",
    "corpusforge.instances.negatives": "the table that all units of building read",
    "corpusforge.dedupe.locate": "answers about places, which units of deduplication read",
}
"""The files that write without being units, and why."""


class Module(NamedTuple):
    """A module of the package, and the dotted names that it imports at any depth."""

    name: str
    tree: ast.Module
    imports: frozenset[str]

    @property
    def room(self) -> str:
        return self.name.split(".")[1] if "." in self.name else "__init__"

    def is_in(self, places: tuple[str, ...]) -> bool:
        own = self.name.removeprefix("corpusforge.")
        return any(own == place or own.startswith(f"{place}.") for place in places)


def _read(path: Path) -> Module:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    tree = ast.parse(path.read_text("utf-8"))
    imports = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
    return Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), tree, frozenset(imports))


MODULES = {module.name: module for module in map(_read, sorted(PACKAGE.rglob("*.py")))}
every_module = pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)


def _used(module: Module) -> set[str]:
    """The modules of the package that a module imports: of ``a.b.c``, the longest part that is a module."""
    used = set()
    for name in module.imports:
        while name and name not in MODULES:
            name = name.rpartition(".")[0]
        used.add(name)
    return used - {"", module.name}


@every_module
def test_arrows_point_downwards(module: Module) -> None:
    assert module.room in FLOOR, f"{module.room} has no floor: add it to FLOORS and to docs/architecture.md"
    for other in map(MODULES.__getitem__, _used(module)):
        down = FLOOR[other.room] <= FLOOR[module.room]
        assert down, f"{module.name} (floor {FLOOR[module.room]}) imports {other.name} (floor {FLOOR[other.room]})"


def test_no_cycle_of_modules() -> None:
    """Imports inside functions count too."""
    graph = {name: _used(module) for name, module in MODULES.items()}
    graphlib.TopologicalSorter(graph).prepare()


def test_no_cycle_of_rooms() -> None:
    rooms: dict[str, set[str]] = {}
    for module in MODULES.values():
        rooms.setdefault(module.room, set()).update({MODULES[name].room for name in _used(module)} - {module.room})
    graphlib.TopologicalSorter(rooms | {"__init__": set()}).prepare()


@every_module
def test_heavy_libraries_stay_in_their_rooms(module: Module) -> None:
    for name in module.imports:
        places = ONLY_IN.get(name.split(".")[0])
        assert places is None or module.is_in(places), f"{module.name} imports {name}"


def test_the_loader_is_free_of_frameworks() -> None:
    """Batches are NumPy, so that any framework can take them."""
    for module in MODULES.values():
        if module.room == "loader":
            assert not {name.split(".")[0] for name in module.imports} & {"torch", "transformers", "datasets"}


@pytest.mark.parametrize("room", KERNELS)
def test_kernels_open_no_output(room: str) -> None:
    """Kernels map values to values; only files that define or run work units write shards."""
    for module in MODULES.values():
        if module.room != room or module.name in MAY_WRITE:
            continue
        names = {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
        names |= {name.rpartition(".")[2] for name in module.imports}
        writes = any(name.startswith("corpusforge.shards") for name in module.imports) and names & set(WRITERS)
        assert not writes or any(name.startswith(HANDLES_UNITS) for name in module.imports), (module.name, writes)


PRIVATE = re.compile(
    r"\b(donors?|survivors?|losers?|outlook|gone on with|carried out|(?:is|are) told|so many words|near repeats?"
    r"|told apart by|said so|where asked|is asked for|what there is|(?:is|are) said)\b",
    re.IGNORECASE,
)
"""Words that are not standard; use duplicates, kept and dropped copies, negatives, resume, applied."""

KEPT_WORDS = {"survivor", "donors", "donor"}
"""Names in users' files: a key, a flag and columns."""


def test_text_uses_standard_terms() -> None:
    pages = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "docs").glob("*.md"), PACKAGE.parent / "README.md"]
    used = {(page.name, word.lower()) for page in pages for word in PRIVATE.findall(page.read_text("utf-8"))}
    assert not {(page, word) for page, word in used if word not in KEPT_WORDS}


def test_help_imports_nothing_heavy() -> None:
    """``--help`` imports nothing heavy; `test_startup` measures its time."""
    code = (
        "import sys; from corpusforge.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('apache_beam', 'torch', 'pyarrow', 'numpy', 'plotly', 'datasets') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip().endswith("[]")
