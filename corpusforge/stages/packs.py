"""What ``corpusforge rules`` shows: packs, their values with sources, their differences; and what it fetches."""

from __future__ import annotations

from typing import Any

from corpusforge import terminal


def show_list() -> None:
    """The bundled packs, one row each."""
    from corpusforge.clean.packs import list_packs, load_pack

    packs = [load_pack(name) for name in list_packs()]
    rows = [[pack.name, pack.kind, _visible(pack.title)] for pack in packs]
    terminal.show(terminal.table("Rule packs", ["pack", "kind", "claims"], rows, words=True))


def show_pack(name: str) -> None:
    """Every value of a pack with its source."""
    from corpusforge.clean.packs import load_pack

    pack = load_pack(name)
    values = pack.values()
    rows = [
        [key, _value(values[key]), rule.metadata["help"], _visible(pack.sources.get(key, ""))]
        for key, rule in pack.rules().items()
    ]
    title = _visible(f"{pack.name} (kind {pack.kind}): {pack.title}")
    terminal.show(terminal.table(title, ["rule", "value", "meaning", "source"], rows, words=True))


def text_of(name: str) -> str:
    """The TOML of a pack as it stands, comments and all: a file of it is the same pack. Raises where it is none."""
    from corpusforge.clean.packs import find_pack, load_pack

    load_pack(name)
    return find_pack(name).read_text("utf-8")


def show_diff(a: str, b: str) -> None:
    """Where two packs differ; packs of two kinds have few rules in common or none."""
    from corpusforge.clean.packs import diff_packs, load_pack

    left, right = load_pack(a), load_pack(b)
    rows = [[key, _value(x), _value(y)] for key, x, y in diff_packs(left, right)]
    if not rows:
        terminal.show(f"{a} and {b} do not differ.")
        return
    terminal.show(terminal.table(f"{a} against {b}", ["rule", a, b], rows, words=True))
    if type(left) is not type(right):
        terminal.show(
            f"{a} is of the kind {left.kind}, {b} of the kind {right.kind}: they look at different things, and "
            "'-' is a rule that the kind does not have. To see what they do to the same pages: corpusforge clean with "
            "each, then corpusforge report A --against B."
        )


def _value(value: Any) -> str:
    """A value for people: off where it switches its rule off.

    >>> _value(0), _value(("a", "b")), _value(None), _value(0.5)
    ('off', 'a | b', '-', '0.5')
    """
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return _visible(" | ".join(value)) or "off"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if value and isinstance(value, float) else str(value) if value else "off"


def _visible(text: str) -> str:
    r"""Text without control characters: a pack may list some, and none of them is for the terminal.

    >>> _visible("a\x1b[2J é")
    'a\\x1b[2J é'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def fetch(what: str, source: str | None) -> str:
    """Fetch a resource into the user's cache; returns what was done as one line."""
    from corpusforge.clean import fetch as fetching

    folder, files = fetching.fetch(what, source)
    return f"{what}: {files} files in {folder}"
