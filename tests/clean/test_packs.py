"""Rule packs: bundled ones are complete and sourced; an invalid one is refused with a way to mend it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from corpusforge import errors
from corpusforge.bundled import bundled
from corpusforge.clean.c4_lines import Rules
from corpusforge.clean.packs import (
    KINDS,
    diff_packs,
    list_packs,
    load_pack,
    load_rules,
    recorded_pack,
    step_of,
)
from corpusforge.sections import Clean

PACK = (bundled("rules") / "c4-tfds-3.1.toml").read_text("utf-8")


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, "utf-8")
    return str(path)


def test_every_value_of_every_pack_has_a_source() -> None:
    assert "c4-tfds-3.1" in list_packs()
    for name in list_packs():
        rules = load_pack(name)
        assert rules.name == name and rules.title
        assert set(rules.sources) == set(rules.values())
        assert all(len(source) > 10 for source in rules.sources.values())


def test_the_default_pack_has_the_values_of_c4(rules: Rules) -> None:
    assert rules.max_page_characters == 190_000
    assert rules.end_marks == (".", "?", "!", '"')
    assert rules.min_words == 5 and rules.min_sentences == 3


def test_packs_are_compared_value_by_value(rules: Rules, tmp_path: Path) -> None:
    mine = load_rules(write(tmp_path, PACK.replace("value = 5\n", "value = 3\n")))
    assert mine.name == "mine"
    assert diff_packs(rules, mine) == [("min_words", 5, 3)]
    assert diff_packs(rules, rules) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PACK.replace("[min_words]", "[min_word]"), "unknown rule 'min_word'; did you mean 'min_words'?"),
        (PACK.replace("value = 5\n", 'value = "5"\n'), "min_words = '5'; it must be a whole number from 0"),
        (PACK.replace("value = true", "value = 1"), "numbered_citations = 1; it must be true or false"),
        (PACK.replace('value = ["{"]', 'value = [""]'), "non-empty strings"),
        (PACK.replace("title", "# title"), "the pack has no title"),
        (PACK + "\n[javascript]\n", "not valid TOML"),
        ("min_words = 5", "'min_words' is not given as value and source"),
        ('title = "x"', "the pack names no rule"),
    ],
)
def test_an_invalid_pack_is_refused(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(errors.RecipeInvalid) as raised:
        load_rules(write(tmp_path, text))
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("chinese", "'c4-zh'"),
        ("zh", "'c4-zh'"),
        ("c4-tfds", "'c4-tfds-2' or 'c4-tfds-3.1'"),
        ("goper", "'gopher'"),
        ("fineweb-edu", "'fineweb'"),
        ("mC4-en", "'mc4'"),
    ],
)
def test_a_pack_is_found_by_part_title_and_spelling(wanted: str, meant: str) -> None:
    with pytest.raises(errors.InputMissing, match=f"did you mean {meant}\\?"):
        load_rules(wanted)


def test_a_missing_pack_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(errors.InputMissing, match=r"did you mean 'c4-tfds-3.1'"):
        load_rules("c4-tfds-3")
    with pytest.raises(errors.InputMissing, match="check the path"):
        load_rules(str(tmp_path / "none.toml"))
    for name in ("xyzzy", "nope"):
        with pytest.raises(errors.InputMissing, match="bundled packs: "):
            load_rules(name)


MINE = 'title = "mine"\n[min_words]\nvalue = 3\nsource = "mine"\n'


@pytest.mark.parametrize("kind", KINDS)
def test_rules_that_a_pack_does_not_name_are_off(kind: str, tmp_path: Path) -> None:
    """One rule of each kind at a time, the others left out: the same as a pack that states them as 0, false and []."""
    rules = KINDS[kind].rules.rules()
    key = next(key for key, field in rules.items() if field.type in ("int", "tuple[str, ...]"))
    value = "7" if rules[key].type == "int" else '["x"]'
    off = {"int": "0", "float": "0", "bool": "false", "tuple[str, ...]": "[]"}
    head = f'kind = "{kind}"\ntitle = "x"\n'
    lines = {name: f'[{name}]\nvalue = {off[str(field.type)]}\nsource = "x"\n' for name, field in rules.items()}
    lines[key] = f'[{key}]\nvalue = {value}\nsource = "x"\n'
    short, full = (load_pack(write(tmp_path, head + text)) for text in (lines[key], "".join(lines.values())))
    assert short.values() == full.values()
    assert [name for name, value in short.values().items() if value] == [key]


@pytest.mark.parametrize("kind", KINDS)
def test_a_pack_without_rules_that_are_on_changes_nothing(
    kind: str, documents_of: Callable[..., pa.RecordBatch]
) -> None:
    pack = KINDS[kind].rules(name="off", title="x", sources={})
    texts = ["One line { lorem ipsum javascript [12]\n\n- x...\n", "a " * 9, "w" * 5000, "the the the\n" * 50]
    verdict = step_of(pack, Clean(sentences="builtin", badwords="off")).apply(documents_of(texts))
    assert verdict.codes.tolist() == [0] * len(texts)
    assert verdict.texts.to_pylist() == texts


def test_a_manifest_keeps_the_values_of_a_short_pack(tmp_path: Path) -> None:
    """The kind too, as two kinds have a rule of that name; rules that are added later change no digest."""
    for kind in ("c4", "gopher"):
        pack = load_pack(write(tmp_path, f'kind = "{kind}"\n{MINE}'))
        kept = json.loads(json.dumps(step_of(pack, Clean(sentences="builtin", badwords="off")).resources()["pack"]))
        assert kept == {"kind": kind, "min_words": 3}
        assert (found := recorded_pack("mine", kept)) is not None and found.values() == pack.values()
        assert type(found) is type(pack)


def test_manifests_from_before_a_rule_was_added_are_read() -> None:
    for name in list_packs():
        pack = load_pack(name)
        older = dict(list(pack.values().items())[:-1])
        if len(older) > 1:
            assert type(recorded_pack(name, older)) is type(pack)


@pytest.mark.parametrize("name", list_packs())
def test_a_pack_is_restored_from_a_manifest(name: str) -> None:
    pack = load_pack(name)
    resources = json.loads(json.dumps(step_of(pack, Clean(sentences="builtin", badwords="off")).resources()))
    found = recorded_pack(name, resources["pack"])
    assert type(found) is type(pack) and found is not None
    assert found.values() == pack.values()
    assert recorded_pack(name, {"unknown": 1}) is None
