"""Recipes: precedence, checks, nearest keys, paths, the bundled ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from corpusforge import errors, recipe, sections
from corpusforge.bundled import bundled

NAMES = sorted(p.stem for p in recipe.bundled("pipelines").glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_bundled_recipes_load_from_anywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert recipe.load(name).name == name


def test_the_recipes_named_in_the_docs_exist() -> None:
    assert {"quickstart", "bert-base", "roberta-base"} <= set(NAMES)


def test_paths_are_relative_to_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[input]\npaths = ["a", "gs://b/c", "/d"]\n[clean]\nbadwords = "off"\n')
    loaded = recipe.load(str(tmp_path / "mine.toml"))
    assert loaded.input.paths == (str(tmp_path / "a"), "gs://b/c", "/d")
    assert loaded.clean.badwords == "off"


def test_an_at_sign_in_a_list_names_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[urls]\nallow = "@names.txt"\nblock = ["a.org", "@/b.txt", "@gs://c/d.txt"]\n')
    loaded = recipe.load(str(tmp_path / "mine.toml"))
    assert loaded.urls.allow == (f"@{tmp_path / 'names.txt'}",)
    assert loaded.urls.block == ("a.org", "@/b.txt", "@gs://c/d.txt")


def test_flags_override_the_recipe() -> None:
    loaded = recipe.override(recipe.load("quickstart"), {"vocab.size": "128", "evaluate.tasks": "blimp,mlm", "seed": 3})
    assert (loaded.vocab.size, loaded.evaluate.tasks, loaded.seed) == (128, ("blimp", "mlm"), 3)
    assert loaded.clean.sentences == "builtin"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[clean]\nrulez = 'x'", "did you mean 'clean.rules'"),
        ("[clean]\nrules = 3", "is not a list"),
        ("langauge = 'de'", "did you mean 'clean.language'"),
        ("[cleen]\nrules = 'x'", "did you mean 'clean'"),
        ("[instances]\nmask_rate = 1.5", "must lie between 0 and 1"),
        ("[instances]\nformat = 'pairs'", "must be one of doc-sentences, full-sentences, segment-pair"),
        ("clean = 3", "write it as a section"),
        ("[clean]\nrules = [['a']]", "is not a list"),
        ("name = '../elsewhere'", "must be a name without slashes"),
        ("name = '..'", "must be a name without slashes"),
        ("name = " + "[" * 100_000, "nested too deeply"),
        ("[clean", "not valid TOML"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(errors.RecipeInvalid, match=message) as caught:
        recipe.load(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_rule_pack_is_named_as_such() -> None:
    with pytest.raises(errors.RecipeInvalid, match=r"a rule pack, not a recipe; .*corpusforge rules show .*mc4\.toml"):
        recipe.load(str(bundled("rules") / "mc4.toml"))


def test_an_unknown_recipe_names_the_nearest() -> None:
    with pytest.raises(errors.InputMissing, match="did you mean 'bert-base'"):
        recipe.load("bert-bass")


def test_every_setting_has_help() -> None:
    assert all(s.help for s in sections.settings().values())


@dataclasses.dataclass(frozen=True)
class Renamed:
    """A section whose field had another name in the last release."""

    keep: str = sections.option("hash", "which copy stays", check=sections.OneOf("hash", "newest"), was="survivor")


@dataclasses.dataclass(frozen=True)
class RecipeOfRenamed:
    name: str = sections.option("run", "name")
    dedupe: Renamed = dataclasses.field(default_factory=Renamed)


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe with one renamed field in place of the real one."""
    sections.warn_renamed.cache_clear()
    monkeypatch.setattr(recipe, "Recipe", RecipeOfRenamed)
    keep = sections.Setting("dedupe.keep", "hash", "which copy stays", was="survivor")
    monkeypatch.setattr(recipe, "settings", lambda: {keep.key: keep})


def test_a_renamed_key_works_and_warns_once(renamed: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.toml"
    path.write_text('[dedupe]\nsurvivor = "newest"\n')
    for _ in range(2):
        assert recipe.load(str(path)).dedupe.keep == "newest"  # type: ignore[attr-defined]
    assert capsys.readouterr().err == f"corpusforge: {path}: dedupe.survivor was renamed: use dedupe.keep\n"
    loaded = recipe.override(RecipeOfRenamed(), {"dedupe.survivor": "newest"})  # type: ignore[arg-type]
    assert loaded.dedupe.keep == "newest"  # type: ignore[attr-defined]
    assert "--set: dedupe.survivor was renamed: use dedupe.keep" in capsys.readouterr().err
    assert recipe.present_key("dedupe.survivor") == recipe.present_key("dedupe.keep") == "dedupe.keep"
    with pytest.raises(errors.RecipeInvalid, match=r"dedupe\.keep = 'x'; it must be one of hash, newest"):
        recipe.override(RecipeOfRenamed(), {"dedupe.survivor": "x"})  # type: ignore[arg-type]


def test_both_names_of_a_renamed_key_are_an_error(renamed: None) -> None:
    with pytest.raises(errors.RecipeInvalid, match=r"both 'dedupe\.keep' and its old name 'dedupe\.survivor'"):
        recipe.build({"dedupe": {"keep": "hash", "survivor": "hash"}}, where="x.toml")
