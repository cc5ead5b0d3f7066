"""The built-in sentence splitter, one document and one character at a time: oracle of `sentences.splitter`."""

from __future__ import annotations

import itertools
import re

from corpusforge.sentences.splitter import ABBREVIATIONS, BEFORE_DIGITS, STARTERS, TITLES

LINE_BREAKS = "\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
CLUSTER = re.compile("[.!?。！？｡…]+")
CLOSED = re.compile("[\"')\\]}»’”」』）】》〉］｝〕〗]{0,4}(?:\\[[0-9A-Za-z ]{1,6}\\]){0,4}")
OPENER = re.compile("[\"'(\\[{<«‹¿¡“‘’”„‚「『（【《〈［｛〔〖]|[-*–—•·] ?")
IDEOGRAPH = range(0xE3, 0xEA)


def sentences(text: str) -> list[str]:
    """The sentences of one document, stripped."""
    cuts = {0, len(text)} | {i + 1 for i, c in enumerate(text) if c in LINE_BREAKS}
    for cluster in CLUSTER.finditer(text):
        closed = CLOSED.match(text, cluster.end())
        assert closed
        if _ends(text, cluster.start(), cluster.end(), closed.end()):
            cuts.add(closed.end())
    ordered = sorted(cuts)
    pieces = [text[a:b].strip() for a, b in itertools.pairwise(ordered)]
    return [p for p in pieces if p]


def _ends(text: str, start: int, stop: int, closed: int) -> bool:
    marks, rest = text[start:stop], text[closed:]
    ideograph = start > 0 and _is_ideograph(text[start - 1])
    if (set(marks) & set("。！？｡") or (ideograph and set(marks) & set("!?…"))) and not CLUSTER.match(rest):
        return True
    following = rest.lstrip()
    gap = len(rest[: len(rest) - len(following)].encode())
    if not gap or gap >= 64:
        return bool(gap)
    opened = following
    for _ in range(3):
        opener = OPENER.match(opened)
        opened = opened[opener.end() :] if opener else opened
    small = opened[:1] in set("abcdefghijklmnopqrstuvwxyz") and not re.search("[A-Z]", text)
    if not opened or not (small or _may_start(opened[0])):
        return False
    if set(marks) - set(".…"):
        return True
    if marks == "." and _never_ends(text[:start], following[:1]):
        return False
    return not (marks != "." or _faint(text[:start])) or _starts_often(following)


def _is_ideograph(character: str) -> bool:
    code = character.encode()
    return len(code) == 3 and (code[0] in IDEOGRAPH or code[0] == 0xEF)


def _may_start(character: str) -> bool:
    if ord(character) < 128:
        return character.isupper() or character.isdigit() or character in "$#@"
    return not character.isspace() and not (ord(character) < 0x800 and character.islower())


def _starts_often(following: str) -> bool:
    word = re.match("[A-Za-z\x80-\U0010ffff]*", following)
    assert word
    initial = word.end() == 1 and following[1:2] == "."
    return word[0].lower() in STARTERS.split() and word[0].isascii() and not initial


def _word(head: str) -> str:
    """The letters before a dot: at most eight bytes of them."""
    found = re.search("[A-Za-z\x80-\x9f\xa1-\u1fff\u2040-\U0010ffff]*$", head)
    assert found
    return found[0]


def _never_ends(head: str, following: str) -> bool:
    word = _word(head).lower()
    if word.isascii() and (
        word in TITLES.split() or (following in set("0123456789") and word in BEFORE_DIGITS.split())
    ):
        return True
    return bool(re.search("(^|\n|\x00)([0-9]{1,3}|[A-Za-z])$", head))


def _faint(head: str) -> bool:
    word = _word(head)
    before = head[: len(head) - len(word)][-1:]
    if word.isascii() and word.lower() in ABBREVIATIONS.split():
        return True
    if len(word) == 1 and (word.isascii() or 0xC0 <= ord(word) < 0x800):
        return (
            not before
            or ord(before) < 0x21
            or before in '.([{"-/&\xa0'
            or ("\u2000" <= before <= "\u203f" and before != "’")
        )
    if len(word.encode()) == 2 and before == ".":
        return True
    return not word and head[-1:] != "" and head[-1] in "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f " and head[-2:-1] == "."
