"""The built-in sentence splitter, one document and one character at a time: the oracle of `text.sentence_spans`."""

from __future__ import annotations

import itertools
import re

from corpusforge.text import _ALWAYS, _BEFORE_DIGITS

LINE_BREAKS = "\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
CLUSTER = re.compile("[.!?。！？｡…]+")
CLOSERS = re.compile("[\"')\\]}»’”」』）】》〉］｝〕〗]{0,4}")
IDEOGRAPH = range(0xE3, 0xEA)


def sentences(text: str) -> list[str]:
    """The sentences of one document, stripped."""
    cuts = {0, len(text)} | {i + 1 for i, c in enumerate(text) if c in LINE_BREAKS}
    for cluster in CLUSTER.finditer(text):
        closed = CLOSERS.match(text, cluster.end())
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
    if not gap or (set(marks) == {"."} and len(marks) > 1):
        return False
    if gap < 64 and not (following and _may_start(following[0])):
        return False
    alone = marks == "." and closed == stop
    return not (alone and _abbreviates(text[:start].encode(), following[:1]))


def _is_ideograph(character: str) -> bool:
    code = character.encode()
    return len(code) == 3 and (code[0] in IDEOGRAPH or code[0] == 0xEF)


def _may_start(character: str) -> bool:
    if ord(character) < 128:
        return character.isupper() or character.isdigit() or character in "\"'([{<$#@"
    return not (ord(character) < 0x800 and character.islower())


def _abbreviates(head: bytes, following: str) -> bool:
    tail = head[-8:]
    found = re.search(rb"[A-Za-z\x80-\xff]*$", tail)
    assert found
    word, previous = found[0], tail[: found.start()][-1:]
    if len(word) < 8:
        lower = word.lower()
        if lower in _ALWAYS.encode().split():
            return True
        if following in set("0123456789") and lower in _BEFORE_DIGITS.encode().split():
            return True
    if len(word) == 1 and (previous == b"." or (word in b"ABCDEFGHJKLMNOPQRSTUVWXYZ" and not previous.isdigit())):
        return True
    return bool(re.search(rb"(^|\n|\x00)\d{1,3}$", head))
