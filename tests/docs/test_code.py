"""The code on the pages runs: commands and Python, page by page, in a folder with the bundled sample.

Commands get flags that make them small and offline (`SMALL`); what they compute is the same kind of thing. A block of
``text`` after commands holds lines of their output.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import corpusforge as cf
from tests.conftest import A_FEW_STEPS, Run
from tests.docs.pages import PAGES, ROOT, Block, blocks_of

RUN = [name for name, text in PAGES.items() if any(block.is_code and not block.reason for block in blocks_of(text))]

OFFLINE = {"sentences": "builtin", "badwords": "off"}
TINY = {"preset": "bert-tiny", "steps": 3, "batch_tokens": 512, "micro_batch_tokens": 512, "warmup_steps": 1}
SMALL: dict[str, dict[str, Any]] = {
    "train-vocab": {"size": 2048},
    "pretrain": {**TINY, "checkpoint_steps": 2},
    "evaluate": {"pairs": 2},
}
"""Settings of a command that make it fast on the sample, over those of the page."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a page is read: with the sample, and with folders that pages name without making them."""
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    shutil.copytree(ROOT / "sample_data" / "raw", tmp_path / "crawl")
    (tmp_path / "crawl" / "short.txt").write_text("This is a page of few words. " * 4, "utf-8")
    (tmp_path / "other-model").symlink_to("model")
    monkeypatch.chdir(tmp_path)
    for name in ("clean", "train_vocab", "pretrain"):
        function, small = getattr(cf, name), SMALL.get(name.replace("_", "-"), {})
        monkeypatch.setattr(cf, name, _smaller(function, OFFLINE if name == "clean" else {}, small))
    return tmp_path


def _smaller(function: Callable[..., Any], default: dict[str, Any], always: dict[str, Any]) -> Callable[..., Any]:
    return lambda *args, **given: function(*args, progress=False, **{**default, **given, **always})


@pytest.mark.parametrize("page", RUN)
def test_the_code_of_a_page_runs(
    page: str, folder: Path, corpusforge: Run, finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "apache_beam" in PAGES[page]:  # Beam's own default may look for a binary to download
        monkeypatch.setattr("apache_beam.options.pipeline_options.StandardOptions.DEFAULT_RUNNER", "FnApiRunner")
    names: dict[str, Any] = {"__name__": "__main__"}
    output = ""
    for block in (block for block in blocks_of(PAGES[page]) if not block.reason):
        if block.file:
            (folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "python":
            exec(compile(block.text, page, "exec"), names)
        elif block.language == "text":
            missing = [line for line in block.text.splitlines() if line not in output]
            assert not missing, f"{page}: not in the output: {missing}\n{output}"
        for words in block.commands:
            output = _run(words[1:], folder, corpusforge, finished_run)


def _run(words: list[str], folder: Path, corpusforge: Run, finished_run: Path) -> str:
    """Run a command made small; returns what it printed."""
    target = words[words.index(">") + 1] if ">" in words else None
    words = words[: words.index(">")] if target else words
    if words[:2] == ["run", "quickstart"]:
        _begun(folder / words[words.index("--output") + 1], finished_run)
    done = corpusforge(*words, *_flags(words))
    assert done.returncode == 0, f"corpusforge {' '.join(words)}\n{done.stderr}"
    if target:
        (folder / target).write_text(done.stdout, "utf-8")
    return done.stdout


def _begun(run: Path, finished_run: Path) -> None:
    """The folder of a run in which some stages are complete."""
    if not run.exists():
        shutil.copytree(finished_run, run)


def _flags(words: list[str]) -> Iterator[str]:
    command = words[0]
    if command == "run":
        yield from A_FEW_STEPS
    if command == "clean":
        yield from (word for key, value in OFFLINE.items() if f"--{key}" not in words for word in (f"--{key}", value))
    if command == "evaluate" and "blimp" not in words:
        return
    for key, value in SMALL.get(command, {}).items():
        yield from (f"--{key.replace('_', '-')}", str(value))


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_run_or_has_a_reason(page: str) -> None:
    """No command or Python escapes the blocks of which `RUN` and the marks speak."""
    blocks = blocks_of(PAGES[page])
    assert len(re.findall(r"^ *corpusforge .", PAGES[page], re.MULTILINE)) == sum(len(b.commands) for b in blocks)
    assert len(re.findall(r"^ *```python", PAGES[page], re.MULTILINE)) == sum(b.language == "python" for b in blocks)
    assert all(block.reason is None or len(block.reason.split()) > 2 for block in blocks)


def test_blocks_of_a_page() -> None:
    text = "A\n\n    corpusforge clean a \\\n        --output b\n\n<!-- not run: no reason -->\n```python\nx\n```\n"
    assert blocks_of(text) == [
        Block("", "corpusforge clean a \\\n    --output b\n", None),
        Block("python", "x\n", "no reason"),
    ]
    assert blocks_of(text)[0].commands == [["corpusforge", "clean", "a", "--output", "b"]]
    assert all(block.reason == "a b" for block in blocks_of("<!-- page not run: a b -->\n```\ny\n```\n"))
