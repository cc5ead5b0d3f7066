"""The programs in pipelines/, run in sequence; their errors are one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import corpusforge as cf
from corpusforge import shards
from tests.beam.raw_pages import write_pages

PIPELINES = Path(__file__).resolve().parents[1] / "pipelines"


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PIPELINES / f"{name}.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PIPELINES.parent)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_the_programs_in_sequence(tmp_path: Path) -> None:
    write_pages(tmp_path / "pages")
    folder = {name: str(tmp_path / name) for name in ("pages", "clean", "dedupe", "vocab", "instances")}
    no_downloads = ["--detector", "fast", "--sentences", "builtin", "--badwords", "off"]
    steps = [
        ("clean", "--input", folder["pages"], "--output", folder["clean"], *no_downloads),
        ("dedupe", "--input", folder["clean"], "--output", folder["dedupe"]),
        ("vocab", "--input", folder["dedupe"], "--output", folder["vocab"], "--size", "512", "--unused", "16"),
        ("instances", "--input", folder["dedupe"], "--vocab", folder["vocab"], "--output", folder["instances"],
         "--format", "segment-pair", "--set", "heldout=0.2"),
    ]  # fmt: skip
    for step in steps:
        done = run(*step)
        assert (done.returncode, done.stderr) == (0, "")
    assert shards.Manifest.load(folder["instances"]).rows["train"] > 50


@pytest.mark.slow
def test_the_examples_with_filters(tmp_path: Path, sample_data: Path) -> None:
    no_downloads = ["--detector", "fast", "--sentences", "builtin", "--badwords", "off"]
    wet = ["--input", str(sample_data / "raw" / "crawl.warc.wet.gz"), "--rules", "c4-tfds-3.1,gopher"]
    counts = {}
    for name, given in (("clean_rows", []), ("clean_wet", wet)):
        done = run(name, *given, "--output", str(tmp_path / name), *no_downloads)
        assert (done.returncode, done.stderr) == (0, "")
        result = cf.load(tmp_path / name)
        reasons = result.table("rejects")["reason"].to_pylist()
        pages = {reason: reasons.count(reason) for reason in reasons if not reason.startswith("line:")}
        counts[name] = {"kept": result.manifest.rows["documents"], **pages}
    once = "filter:says_everything_once:repeats a line"
    assert counts["clean_rows"] == {"kept": 2, once: 1, "page:no-lines": 1, "record:no-text": 1}
    assert counts["clean_wet"]["filter:is_original"] == 3
    assert sum(counts["clean_wet"].values()) == 36


@pytest.mark.slow
def test_errors_are_one_line(tmp_path: Path) -> None:
    for runner, what in (("local", "nothing: no such file"), ("DaskRunner", "silently loses data")):
        arguments = ["--input", str(tmp_path / "nothing"), "--output", str(tmp_path / "out"), "--runner", runner]
        done = run("clean", *arguments, "--badwords", "off", "--sentences", "builtin")
        assert done.returncode == 1
        assert what in done.stderr
        assert done.stderr.count("\n") == 1
