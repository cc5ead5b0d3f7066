"""Errors of the command line: one line that names what was typed and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from corpusforge import errors, sections
from corpusforge.cli import cli
from corpusforge.dedupe import memory


def error_of(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words))
    assert isinstance(done.exception, errors.CorpusForgeError), done.output
    return str(done.exception)


def test_a_missing_path_is_not_taken_for_a_recipe(tmp_path: Path) -> None:
    nothing = "no such file or folder; check the path"
    assert error_of("inspect", "NO_SUCH") == f"NO_SUCH: {nothing}"
    assert error_of("inspect", str(tmp_path / "none")).endswith(nothing)
    assert error_of("inspect", "bert-bas") == f"bert-bas: {nothing}; for a recipe: did you mean 'bert-base'?"
    assert "bundled recipes: " in error_of("inspect", "xyzzy")


def test_a_stage_that_the_recipe_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('stages = ["clean", "dedupe"]\n')
    message = error_of("run", str(tmp_path / "mine.toml"), "--output", str(tmp_path / "out"), "--until", "pretrain")
    assert message == "--until: the recipe mine has no stage pretrain; its stages: clean, dedupe"
    assert not (tmp_path / "out").exists()


def test_several_ranks_of_a_run_are_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    words = ["run", "quickstart", "--output", str(tmp_path / "out")]
    message = error_of(*words)
    assert message.startswith("run: torchrun started 2 processes of it")
    assert "--until build-instances" in message
    assert "\n" not in message
    monkeypatch.setenv("RANK", "1")
    other = CliRunner().invoke(cli, words)
    assert (other.exit_code, other.output) == (1, "")
    assert not (tmp_path / "out").exists()
    other = CliRunner().invoke(cli, ["pretrain", str(tmp_path), "--output", str(tmp_path / "out"), "--dry-run"])
    assert (other.exit_code, other.output) == (0, "")  # the first rank tells the plan of all


def test_run_has_no_flag_recipe() -> None:
    assert "--recipe" not in CliRunner().invoke(cli, ["run", "--help"]).output
    assert "--recipe" in CliRunner().invoke(cli, ["clean", "--help"]).output


@pytest.mark.parametrize("megabytes", ["64", "256", "399"])
def test_a_budget_too_small_names_its_flag_and_one_minimum(megabytes: str, tmp_path: Path) -> None:
    message = error_of("dedupe", str(tmp_path), "--output", str(tmp_path / "out"), "--memory-budget", megabytes)
    assert message == f"--memory-budget: dedupe.memory_megabytes = {megabytes}; it must be at least 400"


def test_the_minimum_of_the_setting_is_that_of_the_plan() -> None:
    least = memory.SMALLEST >> 20
    check = next(f for f in sections.Dedupe.__dataclass_fields__.values() if f.name == "memory_megabytes").metadata
    assert check["check"](least) is None and check["check"](least - 1)
    with pytest.raises(errors.RecipeInvalid, match=r"--memory-budget \(dedupe\.memory_megabytes\): 399 MB"):
        memory.plan(399 << 20, 1, 0)


def test_a_binary_file_is_refused_as_pack_and_as_recipe(tmp_path: Path) -> None:
    path, words = str(tmp_path / "binary.toml"), ["clean", str(tmp_path), "--output", str(tmp_path / "out")]
    (tmp_path / "binary.toml").write_bytes(bytes(range(255, -1, -1)))
    assert error_of(*words, "--rules", path) == f"{path}: not a text file; name the TOML file of a rule pack"
    assert error_of(*words, "--recipe", path) == f"{path}: not a text file; name the TOML file of a recipe"


@pytest.mark.parametrize("command", ["dedupe", "train-vocab", "pretrain"])
def test_a_file_or_a_missing_folder_is_refused_as_a_stage(command: str, tmp_path: Path) -> None:
    path, out = str(tmp_path / "t5.jsonl"), ["--output", str(tmp_path / "out")]
    assert error_of(command, path, *out) == f"{path}: no such folder; name that of a finished stage"
    (tmp_path / "t5.jsonl").write_text("{}")
    mend = "name the folder of a finished stage, or clean it first"
    assert error_of(command, path, *out) == f"{path}: is a file; {mend}"


def test_help_shows_the_default_of_a_switch_as_it_is_typed() -> None:
    words = " ".join(CliRunner().invoke(cli, ["pretrain", "--help"], terminal_width=400).output.split())
    assert "attention within each [default: --packing]" in words
    assert "torch.compile the model [default: --no-compile]" in words
    assert "--budget TIME" in words and "[default: True]" not in words
