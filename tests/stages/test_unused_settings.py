"""An unused flag is refused in one line; an unused setting of a recipe is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from corpusforge import errors, sections
from corpusforge.cli import cli, main
from corpusforge.progress import Silent
from corpusforge.sections import Dedupe, Instances, Recipe, Vocab
from corpusforge.stages import dedupe, preview
from corpusforge.stages.stage import Execution
from corpusforge.stages.unused_settings import check_given, unused_lines
from tests.stages.test_dedupe import page, stage

FLAGS = {
    "--span-sentences": ("4", "exact-spans or near-spans"),
    "--min-sentences": ("1", "lines, exact-spans or near-spans"),
    "--min-words": ("5", "lines, exact-spans or near-spans"),
    "--sentences": ("builtin", "lines"),
    "--threshold": ("0.8", "near-spans or documents"),
    "--permutations": ("128", "near-spans or documents"),
    "--shingle-words": ("3", "near-spans or documents"),
    "--index": ("d1", "documents"),
    "--export-signatures": (None, "documents"),
    "--fold-numbers": (None, "exact-spans, near-spans or documents"),
}
METHODS = ("lines", "exact-spans", "near-spans", "documents")


@pytest.mark.parametrize("flag", FLAGS)
def test_an_unused_flag_of_dedupe_is_one_line(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value, served = FLAGS[flag]
    method = next(m for m in METHODS if m not in served)
    words = ["dedupe", str(tmp_path), "--output", str(tmp_path / "out"), "--method", method, flag]
    with pytest.raises(SystemExit) as ended:
        main(words + ([value] if value else []))
    message = capsys.readouterr().err
    assert ended.value.code == 1 and message.count("\n") == 1
    assert message == (
        f"corpusforge: {flag}: it has no effect with --method {method}; add {served} with --method, or leave it out\n"
    )
    assert not (tmp_path / "out").exists()


TRAIN = ("train-vocab", "d")
BUILD = ("build-instances", "d", "--vocab", "v")
CLEAN, PRETRAIN, EVALUATE = ("clean", "d"), ("pretrain", "d"), ("evaluate", "d")
UNUSED = [
    (TRAIN, "--uncased", "--model bpe --uncased"),
    (TRAIN, "--min-pair", "--model bpe --min-pair 3"),
    (TRAIN, "--min-pair", "--min-pair 3"),
    (TRAIN, "--coverage", "--model bpe --coverage 0.99"),
    (TRAIN, "--alphabet", "--model unigram --alphabet 900"),
    (TRAIN, "--normalization", "--normalization nfkc"),
    (TRAIN, "--uncased", "--model unigram --normalization nmt_nfkc --uncased"),
    (TRAIN, "--model", "--from x --model bpe"),
    (TRAIN, "--size", "--from x --size 512"),
    (TRAIN, "--cased", "--from x --cased"),
    (TRAIN, "--set vocab.max_words", "--from x --set vocab.max_words=2000"),
    (BUILD, "--copies", "--masking static --copies 5"),
    (BUILD, "--copies", "--copies 5"),
    (BUILD, "--copies-redraw", "--masking dynamic --copies-redraw masks"),
    (BUILD, "--pair-sampling", "--format sop --pair-sampling original"),
    (BUILD, "--short-probability", "--format full-sentences --short-probability 0.2"),
    (BUILD, "--set instances.negatives_megabytes", "--set instances.negatives_megabytes=3"),
    (BUILD, "--heldout-by", "--heldout 0 --heldout-by url"),
    (CLEAN, "--pii-kinds", "--pii-kinds email"),
    (CLEAN, "--contamination-ngram", "--contamination-ngram 9"),
    (CLEAN, "--min-language-probability", "--detector fast --min-language-probability 0.5"),
    (CLEAN, "--detector", "--language= --detector fast"),
    (CLEAN, "--set urls.memory_megabytes", "--set urls.memory_megabytes=99"),
    (PRETRAIN, "--spike-deviations", "--spike-deviations 3"),
    (PRETRAIN, "--decay-share", "--decay linear --decay-share 0.2"),
    (PRETRAIN, "--batch-ramp-share", "--batch-ramp-share 0.5"),
    (PRETRAIN, "--short-length", "--short-share 0 --short-length 64"),
    (PRETRAIN, "--init-shape", "--init-shape"),
    (EVALUATE, "--epochs", "--task mlm,blimp --epochs 2"),
    (EVALUATE, "--pairs", "--task glue --pairs 9"),
    (EVALUATE, "--squad-threshold", "--task glue --squad-threshold 1"),
]


@pytest.mark.parametrize(("command", "flag", "words"), UNUSED)
def test_an_unused_flag_of_any_command_is_one_line(
    command: tuple[str, ...], flag: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--output", str(tmp_path / "out"), *words.split()])
    message = capsys.readouterr().err
    assert ended.value.code == 1 and message.count("\n") == 1
    assert message.startswith(f"corpusforge: {flag}: ") and "leave it out" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(vocab=Vocab(model="bpe", lowercase=False)),
        Recipe(vocab=Vocab(model="unigram", lowercase=True)),
        Recipe(vocab=Vocab(model="wordpiece-likelihood")),
        Recipe(instances=Instances(masking="duplicated", format="segment-pair")),
    ],
)
def test_used_settings_are_accepted(recipe: Recipe) -> None:
    used = {
        "bpe": ["vocab.lowercase", "vocab.size"],
        "unigram": ["vocab.lowercase", "vocab.coverage", "vocab.normalization"],
        "wordpiece-likelihood": ["vocab.lowercase", "vocab.alphabet", "vocab.min_pair"],
        "wordpiece": [k for k, s in sections.settings().items() if "instances" in k and (s.only_with or s.unless)],
    }
    check_given(recipe, dict.fromkeys(used[recipe.vocab.model], "--flag"))
    check_given(Recipe(vocab=Vocab(adopt="x")), {"vocab.adopt": "--from", "vocab.sample": "--sample"})


def test_help_names_the_methods_of_each_flag() -> None:
    shown = " ".join(CliRunner().invoke(cli, ["dedupe", "--help"], terminal_width=200).output.split())
    for key, spec in sections.settings().items():
        if key.startswith("dedupe.") and spec.only_with:
            assert spec.help.startswith(", ".join(spec.only_with["dedupe.method"]) + ": ")
    for flag, (_, served) in FLAGS.items():
        assert served.replace(" or ", ", ") + ": " in shown.split(f" {flag} ", 1)[-1] or flag in (
            "--export-signatures",
            "--fold-numbers",
        )


@pytest.mark.parametrize("flag", ["--no-signatures", "--keep-numbers"])
def test_switching_off_what_is_off_is_accepted(flag: str, tmp_path: Path) -> None:
    upstream = stage(tmp_path / "in", {"a": page("a")})
    words = ["dedupe", upstream, "--output", str(tmp_path / "out"), "--method", "lines", "--sentences", "builtin"]
    assert CliRunner().invoke(cli, [*words, "--workers", "1", flag]).exit_code == 0


def test_unused_settings_are_refused_by_set_and_in_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "quickstart", "--output", str(tmp_path / "out"), "--set", "dedupe.threshold=0.7"])
    assert "--set dedupe.threshold: it has no effect with --method exact-spans" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "setting", "reader"),
    [
        (("pretrain", "d"), "instances.mask_rate=0.3", "build-instances"),
        (("build-instances", "d", "--vocab", "v"), "pretrain.steps=3", "pretrain or evaluate"),
        (("dedupe", "d"), "clean.rules=gopher", "clean"),
    ],
)
def test_a_setting_of_another_stage_is_one_line(
    command: tuple[str, ...], setting: str, reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*command, "--output", str(tmp_path / "out"), "--set", setting])
    key = setting.split("=")[0]
    message = f"--set {key}: {command[0]} does not read [{key.split('.')[0]}], it is for {reader}; give it to {reader}"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_settings_of_any_method_of_a_chain_are_accepted() -> None:
    recipe = Recipe(dedupe=Dedupe(method=("lines", "documents"), threshold=0.7, sentences="builtin"))
    check_given(recipe, {"dedupe.threshold": "--threshold", "dedupe.sentences": "--sentences", "seed": "--seed"})
    assert not unused_lines(recipe)


class Recorder(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize("dry", [True, False])
def test_unused_settings_of_a_recipe_are_reported(tmp_path: Path, dry: bool) -> None:
    upstream = stage(tmp_path / "in", {"a": page("a")})
    recipe, message = Recipe(dedupe=Dedupe(threshold=0.9, export_signatures=True)), Recorder()
    execution = Execution(workers=1, progress=message)
    _ = (
        preview.dedupe(recipe, upstream, execution)
        if dry
        else dedupe.dedupe(recipe, upstream, f"{tmp_path}/o", execution)
    )
    assert message.lines[:2] == [
        "dedupe.threshold is not used by exact-spans; it is for near-spans or documents",
        "dedupe.export_signatures is not used by exact-spans; it is for documents",
    ]
    indexed = Recipe(dedupe=Dedupe(index=("d1",)))
    with pytest.raises(errors.RecipeInvalid, match="looks into no index"):
        _ = preview.dedupe(indexed, upstream, execution) if dry else dedupe.dedupe(indexed, upstream, "o", execution)
