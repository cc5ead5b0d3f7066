"""What ``corpusforge rules`` shows: packs, their values with sources, their differences; and what it fetches."""

from __future__ import annotations

from corpusforge import terminal


def show_list() -> None:
    """The bundled packs, one row each."""
    from corpusforge.clean.rules import list_rules, load_rules

    rows = [[name, load_rules(name).title] for name in list_rules()]
    terminal.show(terminal.table("Rule packs", ["pack", "claims"], rows, words=True))


def show_pack(name: str) -> None:
    """Every value of a pack with its source."""
    from corpusforge.clean.rules import load_rules

    rules = load_rules(name)
    rows = [[key, str(value), rules.sources.get(key, "")] for key, value in rules.values().items()]
    terminal.show(terminal.table(f"{rules.name}: {rules.title}", ["rule", "value", "source"], rows, words=True))


def show_diff(a: str, b: str) -> None:
    """Where two packs differ."""
    from corpusforge.clean.rules import diff_rules, load_rules

    rows = [[key, str(left), str(right)] for key, left, right in diff_rules(load_rules(a), load_rules(b))]
    terminal.show(
        terminal.table(f"{a} against {b}", ["rule", a, b], rows, words=True) if rows else f"{a} and {b} do not differ."
    )


def fetch(what: str, source: str | None) -> str:
    """Fetch a resource into the user's cache; returns what was done as one line."""
    from corpusforge.clean import fetch as fetching

    folder, files = fetching.fetch(what, source)
    return f"{what}: {files} files in {folder}"
