"""Tags of a page, one at a time, and the depth of nested elements: the oracle of `documents.html`."""

from __future__ import annotations

import re
from collections import Counter

ALL = {"div", "article", "p", "di", "a", "b"}
SPACE = " \t\n\r\f"


def depth(page: str, names: set[str]) -> int:
    """The most of these open at once; an end tag without a begin tag of its name is ignored."""
    open_: Counter[str] = Counter()
    most = 0
    for tag in re.finditer(r"<(/?)([a-zA-Z][a-zA-Z0-9-]{0,7})", page):
        name = tag[2].lower()
        if name in names:
            open_[name] = max(0, open_[name] - 1) if tag[1] else open_[name] + 1
            most = max(most, open_.total())
    return most


def tokens(page: str) -> list[tuple[str, int]]:
    """Every tag: its name, with "/" before it if it is an end tag, and its number of attributes."""
    found, at = [], 0
    while (at := page.find("<", at)) >= 0:
        at += 1
        if page.startswith("!--", at):
            at = _after_comment(page, at + 3)
        elif re.match("/?[a-zA-Z]", page[at : at + 2]):
            name, count, at = _tag(page, at)
            found.append((name, count))
            if name in ("script", "title"):
                end = re.compile(f"</{name}", re.IGNORECASE).search(page, at)
                at = end.start() if end else len(page)
    return found


def _after_comment(page: str, at: int) -> int:
    short = re.match("-?>", page[at : at + 2])
    end = short or re.compile("--!?>").search(page, at)
    return at + short.end() if short else end.end() if end else len(page)


def _tag(page: str, at: int) -> tuple[str, int, int]:
    """Name, number of attributes and where a tag ends, as WHATWG HTML reads it (13.2.5.6 to 13.2.5.40)."""
    begin = at
    at += page[at] == "/"
    while at < len(page) and page[at] not in SPACE + "/>":
        at += 1
    name, count = page[begin:at].lower(), 0
    while at < len(page) and page[at] != ">":
        if page[at] in SPACE + "/":
            at += 1
            continue
        count, at = count + 1, at + 1
        while at < len(page) and page[at] not in SPACE + "/>=":
            at += 1
        value = at
        while value < len(page) and page[value] in SPACE:
            value += 1
        if value < len(page) and page[value] == "=":
            at = _after_value(page, value + 1)
    return name, count, at + 1


def _after_value(page: str, at: int) -> int:
    while at < len(page) and page[at] in SPACE:
        at += 1
    if at < len(page) and page[at] in "\"'":
        end = page.find(page[at], at + 1)
        return end + 1 if end >= 0 else len(page)
    while at < len(page) and page[at] not in SPACE + ">":
        at += 1
    return at
