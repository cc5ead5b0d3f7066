"""Which counter the command line uses: Punkt or an error, unless the built-in splitter is requested."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = "This is one sentence of several words. Here is another one, which is as long. And a third one ends the page."


@pytest.fixture
def clean(corpusforge: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Cleans one page on a machine without resources."""
    for name in ("HOME", "NLTK_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": PAGE, "url": "http://a.org/"}) + "\n")
    given = ["clean", str(tmp_path / "in.jsonl"), "--badwords", "off", "--workers", "1", "--quiet"]

    def run(name: str, *words: str) -> object:
        return corpusforge(*given, "--output", str(tmp_path / name), *words)

    return run


def counted_by(folder: Path) -> str:
    steps = json.loads((folder / "manifest.json").read_text())["recipe"]["steps"]
    return str(next(step["sentences"] for step in steps if "sentences" in step))


def test_without_punkt_a_run_names_both_ways_out(clean: Callable[..., object], tmp_path: Path) -> None:
    done = clean("out", "--detector", "fast")
    assert done.returncode == 1 and not (tmp_path / "out/manifest.json").exists()
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and "corpusforge rules fetch punkt" in lines[0] and "--sentences builtin" in lines[0]


@pytest.mark.slow
def test_the_manifest_records_the_counter(
    clean: Callable[..., object], corpusforge: Callable[..., object], tmp_path: Path, shared_data: Path
) -> None:
    assert clean("builtin", "--detector", "fast", "--sentences", "builtin").returncode == 0
    assert counted_by(tmp_path / "builtin") == "builtin"
    assert corpusforge("rules", "fetch", "punkt", "--from", str(shared_data / "nltk_data")).returncode == 0
    assert clean("punkt", "--detector", "fast").returncode == 0
    assert counted_by(tmp_path / "punkt").startswith("punkt ")


def test_chinese_pages_need_no_punkt(clean: Callable[..., object], tmp_path: Path) -> None:
    assert clean("zh", "--rules", "c4-zh", "--language", "").returncode == 0
    assert counted_by(tmp_path / "zh") == "builtin"
