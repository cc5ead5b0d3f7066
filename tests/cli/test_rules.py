"""`corpusforge rules`: what is shown of packs, and how two of them differ, for every pair there is."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from click.testing import CliRunner

from corpusforge import errors, terminal
from corpusforge.clean.packs import diff_packs, list_packs, load_pack
from corpusforge.cli import cli, rules

PAIRS = list(itertools.combinations(list_packs(), 2))


def test_the_list_names_every_pack(capsys: pytest.CaptureFixture[str]) -> None:
    rules.show_list()
    shown = capsys.readouterr().out
    assert {"c4-datatrove", "c4-paper", "c4-tfds-2", "c4-tfds-3.1", "c4-zh", "mc4", "gopher", "fineweb"} <= set(
        list_packs()
    )
    assert all(name in shown for name in list_packs())


@pytest.mark.parametrize("name", list_packs())
def test_a_pack_is_shown_with_its_sources(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    rules.show_pack(name)
    shown = "".join(capsys.readouterr().out.split())
    assert load_pack(name).kind in shown
    assert "source" in shown


@pytest.mark.parametrize("more", [[], ["--toml"]])
@pytest.mark.parametrize("name", list_packs())
def test_a_pack_written_to_a_file_is_the_same_pack(name: str, more: list[str], tmp_path: Path) -> None:
    shown = CliRunner().invoke(cli, ["rules", "show", name, *more])
    assert shown.exit_code == 0, shown.output
    path = tmp_path / "my.toml"
    path.write_text(shown.output, "utf-8")
    copied, original = load_pack(str(path)), load_pack(name)
    assert (copied.values(), copied.sources, copied.kind) == (original.values(), original.sources, original.kind)


def test_names_are_folded_and_never_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ["line:no-terminal-punctuation", "page:duplicate-paragraph-characters"]
    rows = [[name, "what the rule saw in it " * 3, "a text that goes on and on " * 9] for name in names]
    terminal.show(terminal.table("Examples", ["reason", "what the rule saw", "text"], rows, words=True))
    rules.show_diff("c4-tfds-3.1", "c4-datatrove")
    shown = capsys.readouterr().out
    assert "…" not in shown
    firsts = "".join(line.strip("│").split("│")[0].strip() for line in shown.splitlines() if line.startswith("│"))
    assert all(name in firsts for name in names)
    assert all(row[0] in firsts for row in diff_packs(load_pack("c4-tfds-3.1"), load_pack("c4-datatrove")))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_every_pair_differs_and_says_where(a: str, b: str, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = load_pack(a), load_pack(b)
    rows = diff_packs(left, right)
    assert rows
    assert diff_packs(right, left) and {r[0] for r in diff_packs(right, left)} == {r[0] for r in rows}
    for key, x, y in rows:
        if key != "kind":
            assert (left.values().get(key), right.values().get(key)) == (x, y) and x != y
    rules.show_diff(a, b)
    shown = " ".join(capsys.readouterr().out.split())
    assert (left.kind == right.kind) == ("check different things" not in shown)
    assert rows[0][0] == "kind" or left.kind == right.kind


def test_a_pack_does_not_differ_from_itself(capsys: pytest.CaptureFixture[str]) -> None:
    rules.show_diff("mc4", "mc4")
    assert "do not differ" in capsys.readouterr().out


def test_markup_in_a_title_is_shown_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'kind = "patterns"\ntitle = "[red]x[/]\\u001b[2J[link=file:///etc/passwd]y"\n'
        '[drop_lines]\nvalue = ["[/nonsense]"]\nsource = "s"\n[drop_pages]\nvalue = []\nsource = "s"\n'
    )
    rules.show_pack(str(path))
    shown = capsys.readouterr().out
    assert "\x1b[2J" not in shown and "[red]x[/]" in shown and "[/nonsense]" in shown


def test_an_unknown_pack_is_one_line() -> None:
    with pytest.raises(errors.InputMissing, match="did you mean 'c4-tfds-"):
        rules.show_diff("c4-tfds-3", "mc4")
