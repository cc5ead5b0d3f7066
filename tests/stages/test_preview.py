"""Dry runs of clean: a sample from all over the input, a funnel, examples, warnings; nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from corpusforge import recipe, sections
from corpusforge.cli import cli
from corpusforge.stages import preview

GOOD = "This is a whole sentence of the page number {0}. Here comes another one, which is number {0}. And a third one."
OFF = ["--language", "", "--badwords", "off", "--sentences", "builtin"]


def write_files(folder: Path, texts: dict[str, list[str]]) -> Path:
    folder.mkdir()
    for name, lines in texts.items():
        rows = (json.dumps({"text": line}) + "\n" for line in lines)
        (folder / name).write_text("".join(rows), "utf-8")
    return folder


def dry_run(source: Path, *more: str) -> Result:
    output = source.parent / "never"
    result = CliRunner().invoke(cli, ["clean", str(source), "--output", str(output), "--dry-run", *OFF, *more])
    assert result.exit_code == 0, result.output
    assert not output.exists()
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {f"part-{k}.jsonl": [f"menu of part {k}", *[GOOD.format(n) for n in range(200)]] for k in range(8)}
    return write_files(tmp_path / "in", texts)


def test_sample_is_spread_over_the_files(folder: Path) -> None:
    flags = {"input.paths": [str(folder)], "clean.language": "", "clean.badwords": "off", "clean.sentences": "builtin"}
    settings = recipe.override(sections.Recipe(), flags, where="test")
    result = preview.clean(settings, 16)
    assert sum(counts["rows"] for reason, counts in result.tallies.items() if reason == "page:no-lines") == 8
    assert len({row["text"] for row in result.examples["page:no-lines"]}) == preview.EXAMPLES


def test_small_sample_of_many_files_reads_few(folder: Path) -> None:
    settings = recipe.override(sections.Recipe(), {"input.paths": [str(folder)], "clean.language": ""}, where="test")
    settings = recipe.override(settings, {"clean.badwords": "off", "clean.sentences": "builtin"}, where="test")
    assert preview.clean(settings, 2).records < preview.clean(settings, 1_000_000).records == 8 * 201


@pytest.mark.slow
def test_a_sample_takes_from_long_files_what_short_ones_lack(tmp_path: Path) -> None:
    """All records where the sample is larger than the input; else as many as it names, wherever the long files are."""
    texts = {f"{k:03d}.jsonl": [GOOD.format(k)] * (120 if k == 0 else 1) for k in range(100)}
    flags = {"input.paths": [str(write_files(tmp_path / "in", texts))], "clean.language": "", "clean.badwords": "off"}
    settings = recipe.override(sections.Recipe(), flags | {"clean.sentences": "builtin"}, where="test")
    assert [preview.clean(settings, sample).records for sample in (7, 150, 219, 1000)] == [7, 150, 219, 219]


def test_funnel_and_examples_are_shown(folder: Path) -> None:
    shown = dry_run(folder).output
    assert "Step by step" in shown
    assert "page:no-lines" in shown
    assert "menu of part" in shown
    assert "warning" not in shown


def test_warning_where_nothing_is_dropped(tmp_path: Path) -> None:
    source = write_files(tmp_path / "in", {"a.jsonl": [GOOD.format(1)]})
    assert "warning: nothing is dropped" in dry_run(source).output


def test_warning_where_nearly_all_is_dropped(tmp_path: Path) -> None:
    source = write_files(tmp_path / "in", {"a.jsonl": ["menu"] * 19 + [GOOD.format(1)]})
    shown = " ".join(dry_run(source).output.split())
    assert "warning: 95% of documents" in shown
    assert "warning: c4-tfds-3.1 drops 95% of the documents" in shown


def test_steps_are_shown_as_they_run_and_not_by_name(tmp_path: Path) -> None:
    source = write_files(tmp_path / "in", {"a.jsonl": [GOOD.format(n) for n in range(20)]})
    packs = {"zzz": "number 1[0-9]", "aaa": "never there"}
    for name, pattern in packs.items():
        rules = {"drop_lines": "[]", "drop_pages": f'["{pattern}"]'}
        values = "".join(f'[{rule}]\nvalue = {value}\nsource = "the test"\n' for rule, value in rules.items())
        settings = f'kind = "patterns"\ntitle = "made for a test"\n{values}'
        (tmp_path / f"{name}.toml").write_text(settings, "utf-8")
    flags = ["--rules", ",".join(str(tmp_path / f"{name}.toml") for name in packs), *OFF]
    shown = dry_run(source, *flags[:2]).output
    output = tmp_path / "out"
    full = CliRunner().invoke(cli, ["clean", str(source), "--output", str(output), "--workers", "1", *flags]).output
    for text in (shown, full):
        rows = [line.split() for line in text.splitlines() if "zzz" in line or "aaa" in line]
        assert [(row[1], row[-2]) for row in rows[:2]] == [("zzz", "50.0%"), ("aaa", "0.0%")]


def test_unreadable_records_are_counted_as_in_a_run(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"text": GOOD.format(1)}) + "\nno json\n", "utf-8")
    settings = recipe.override(sections.Recipe(), {"input.paths": [str(source)], "clean.language": ""}, where="test")
    settings = recipe.override(settings, {"clean.badwords": "off", "clean.sentences": "builtin"}, where="test")
    assert preview.clean(settings, 10).tallies["record:bad-json"]["rows"] == 1


def test_sample_without_dry_run_is_wrong_usage(tmp_path: Path) -> None:
    words = ["clean", str(tmp_path), "--output", str(tmp_path / "out"), "--sample", "5"]
    assert CliRunner().invoke(cli, words).exit_code == 2


def test_a_sample_says_what_it_cannot_show(folder: Path) -> None:
    assert "older copies of a URL are not searched for" in dry_run(folder, "--duplicates", "newest").output
