"""Flags of pipeline programs: those of the settings, with their checks."""

from __future__ import annotations

import pytest

from corpusforge import errors
from corpusforge.beam.program import parse, parser_of, run_main
from corpusforge.sections import Recipe

KEYS = ("clean.rules", "clean.detector", "dedupe.span_sentences", "dedupe.fold_numbers")


def test_flags_are_those_of_settings() -> None:
    parser = parser_of("What it does.")
    parser.add_argument("--input")
    words = ["--input", "x", "--rules", "c4-en,gopher", "--span-sentences", "2", "--fold-numbers", "--project=p"]
    own, recipe, engine = parse(parser, words, *KEYS)
    assert own.input == "x"
    assert recipe.clean.rules == ("c4-en", "gopher")
    assert (recipe.dedupe.span_sentences, recipe.dedupe.fold_numbers) == (2, True)
    assert recipe.clean.detector == Recipe().clean.detector
    assert (engine.runner, engine.options) == ("local", ("--project=p",))


def test_nothing_given_is_the_default() -> None:
    assert parse(parser_of(""), [], *KEYS)[1] == Recipe()


def test_help_has_choices_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(parser_of("What it does."), ["--help"], *KEYS)
    shown = " ".join(capsys.readouterr().out.split())
    assert "{langdetect,fast,cascade}" in shown
    assert "(default: 3)" in shown


def test_errors_are_one_line() -> None:
    with pytest.raises(errors.RecipeInvalid, match="span_sentences = 0"):
        parse(parser_of(""), ["--span-sentences", "0"], *KEYS)
    with pytest.raises(SystemExit, match=r"^error: --runner DaskRunner: Beam's Dask runner silently loses data.*$"):
        run_main(lambda: parse(parser_of(""), ["--runner", "DaskRunner"], *KEYS))
