"""Trust: nothing that is read can run code, and no name in the input becomes a path."""

from __future__ import annotations

import ast
import gzip
import io
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusforge as cf
from corpusforge import errors, recipe
from corpusforge.beam.engine import JOBS
from corpusforge.beam.graph import ReadList
from corpusforge.evaluate.blimp import read_pairs
from corpusforge.sections import Recipe
from corpusforge.stages import clean
from corpusforge.stages.stage import Execution

PACKAGE = Path(__file__).resolve().parent.parent / "corpusforge"

RUNS_CODE = {
    "pickle.load", "pickle.loads", "pickle.Unpickler", "dill.load", "dill.loads", "cloudpickle.load",
    "cloudpickle.loads", "joblib.load", "shelve.open", "marshal.load", "marshal.loads", "torch.load",
    "torch.jit.load", "numpy.load", "np.load", "pandas.read_pickle", "nltk.data.load", "yaml.load",
    "yaml.unsafe_load", "eval", "exec", "compile", "__import__", "os.system", "os.popen", "subprocess.run",
    "subprocess.Popen", "subprocess.call", "subprocess.check_output", "tarfile.extractall", "shutil.unpack_archive",
}  # fmt: skip
"""Calls by which data becomes code, or an archive's names become paths."""

ALLOWED = {
    ("beam/graph.py", "pickle.loads"): "a list that this run wrote: the graph holds its SHA-256",
    ("clean/filters.py", "cloudpickle.loads"): "a function that this run sent to its own workers",
    ("trainer/hf_folder.py", "torch.load"): "weights_only=True (tested below), which makes only tensors",
}
"""Exceptions, with their reasons."""


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _uses(path: Path) -> set[str]:
    """Dotted names of every call and reference in a file."""
    tree = ast.parse(path.read_text("utf-8"))
    names = {_name(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names | {_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_no_module_can_run_code_from_data(path: Path) -> None:
    place = path.relative_to(PACKAGE).as_posix()
    used = {name for name in _uses(path) if name in RUNS_CODE}
    used |= {name for name in _uses(path) if name.endswith((".extractall", ".extract")) and "pc." not in name}
    used -= {name for where, name in ALLOWED if where == place} | {"trafilatura.extract"}
    assert not used, f"{place} uses {used}"
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and _name(node.func) == "torch.load":
            assert {k.arg: getattr(k.value, "value", None) for k in node.keywords}.get("weights_only") is True, place
        if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "trust_remote_code"):
            assert isinstance(node.value, ast.Constant) and node.value.value is False, place
        if isinstance(node, ast.Import | ast.ImportFrom) and place not in ("beam/graph.py", "clean/filters.py"):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            assert not {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"} & set(names), place


class Bomb:
    """Unpickling it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return (_write, (str(self.path), "ran"))


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def test_a_list_of_units_from_another_writer_is_not_unpickled(tmp_path: Path) -> None:
    (tmp_path / JOBS).write_bytes(pickle.dumps([Bomb(tmp_path / "ran")]))
    with pytest.raises(errors.ManifestInvalid, match="not the list"):
        list(ReadList("0" * 64).process(str(tmp_path / JOBS)))
    assert not (tmp_path / "ran").exists()


def _settings(folder: Path) -> Recipe:
    values = {"clean.language": "", "clean.badwords": "off", "clean.sentences": "builtin", "urls.duplicates": "newest"}
    return recipe.override(Recipe(), {"input.paths": [str(folder)], **values})


def test_pickles_in_the_input_are_not_unpickled(tmp_path: Path) -> None:
    """A pickle stays bytes, whatever its file is called."""
    (tmp_path / "in").mkdir()
    packed = pickle.dumps(Bomb(tmp_path / "ran"))
    objects = io.BytesIO()
    np.save(objects, np.array([Bomb(tmp_path / "ran")], object), allow_pickle=True)
    for name, data in {"a.jsonl": packed, "b.txt": objects.getvalue(), "c.warc": packed, "d.arc": packed}.items():
        (tmp_path / "in" / name).write_bytes(data)
    row = {"text": [b"A line of text that is here."], "url": [packed], "timestamp": [packed]}
    pq.write_table(pa.table(row), tmp_path / "in" / "e.parquet")
    clean.clean(_settings(tmp_path / "in"), str(tmp_path / "out"), Execution(workers=1))
    assert not (tmp_path / "ran").exists()


HOSTILE = [
    "../../outside",
    "/tmp/outside-of-corpusforge",
    "..\\..\\outside",
    "a/../../../outside",
    "C:\\outside",
    "%2e%2e/x",
]


def test_no_name_in_an_archive_becomes_a_path(tmp_path: Path) -> None:
    """URLs and file names that look like paths stay values in rows; nothing is written outside the output."""
    inside = tmp_path / "deep" / "in"
    inside.mkdir(parents=True)
    text = "This line has enough words to stay. So has this other one. And this is the third of them."
    block = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{text}".encode()
    head = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-05-01T00:00:00Z\r\nContent-Type: application/http\r\n"
    names = "WARC-Target-URI: {0}\r\nWARC-Filename: {0}\r\nContent-Length: {1}\r\n\r\n"
    starts = [f"{head}{names.format(url, len(block))}".encode() for url in HOSTILE]
    records = [start + block + b"\r\n\r\n" for start in starts]
    (inside / "a.warc.gz").write_bytes(b"".join(map(gzip.compress, records)))
    rows = [json.dumps({"text": text, "url": url, "source": url, "id": url}) for url in HOSTILE]
    (inside / "x..%2f..%2foutside.jsonl").write_text("\n".join(rows))
    (inside / "x\\..\\outside.jsonl").write_text("\n".join(rows))
    before = sorted(tmp_path.rglob("*"))
    manifest = clean.clean(_settings(inside), str(tmp_path / "deep" / "out"), Execution(workers=1)).manifest
    assert manifest.statistics["documents_in"] == 3 * len(HOSTILE)
    written = set(tmp_path.rglob("*")) - set(before)
    assert all((tmp_path / "deep" / "out") in path.parents or path == tmp_path / "deep" / "out" for path in written)
    assert not Path("/tmp/outside-of-corpusforge").exists()
    files = {path.name for path in written if path.is_file()}
    assert all(name.startswith(("part-", "manifest", "run", "timing", ".lock")) for name in files), files


def test_a_tar_file_is_never_unpacked(tmp_path: Path) -> None:
    """BLiMP's archive: members with hostile names, links and devices."""
    archive = tmp_path / "blimp.tar.gz"
    pair = {"sentence_good": "The cat sleeps.", "sentence_bad": "The cat sleep.", "UID": "x", "linguistics_term": "y"}
    data = (json.dumps(pair) + "\n").encode()
    with tarfile.open(archive, "w:gz") as archive_file:
        for name in ("../../outside.jsonl", "/tmp/outside-of-corpusforge.jsonl", "data/fine.jsonl"):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive_file.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("data/link.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive_file.addfile(link)
        device = tarfile.TarInfo("data/device.jsonl")
        device.type = tarfile.FIFOTYPE
        archive_file.addfile(device)
    before = sorted(tmp_path.parent.rglob("*"))
    pairs = read_pairs(str(archive), 0)
    assert {pair.paradigm for pair in pairs} == {"x"}
    assert sorted(tmp_path.parent.rglob("*")) == before
    assert not Path("/tmp/outside-of-corpusforge.jsonl").exists()


@pytest.mark.parametrize("how", ["recipe", "settings", "rules"])
def test_only_the_command_line_names_code(tmp_path: Path, how: str) -> None:
    """A recipe, a pack or a setting that names a function of a file is refused, and the file does not run."""
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef keep(text): return True\n")
    (tmp_path / "in.jsonl").write_text('{"text": "A text."}\n')
    (tmp_path / "r.toml").write_text('[clean]\nrules = ["mine.py:keep"]\n')
    named = f"{tmp_path}/mine.py:keep"
    ways: dict[str, Any] = {"recipe": tmp_path / "r.toml", "settings": {"clean.rules": named}, "rules": [named]}
    with pytest.raises(errors.CorpusForgeError, match="keep"):
        cf.clean(tmp_path / "in.jsonl", language="", badwords="off", progress=False, **{how: ways[how]})
    assert not (tmp_path / "ran").exists()
