"""Extract the text of an HTML page: main content or all text by resiliparse, or main content by trafilatura.

A page that would take the memory or time of thousands is refused before it is parsed. Counts of tags and attributes
bound the cost of parsing. Measured with resiliparse 2.0: a parsed element takes 300 to 560 bytes, so 8 MiB of ``<p>a``
take 1.2 GB; the attributes of a tag are compared with each other (32,000 of them: 2 s); closing an element walks up
through all its ancestors (7 ns each: 40,000 ``<span>`` with 40,000 ``<hr>``: 12 s); a line of a list is indented by its
depth (60,000 ``<ul>``: 3.6 GB of text); finding the main content takes the product of elements and the depth of ``div``
and ``article``, so 200 KB of ``<div>`` take 30 s. Real pages stay far below the limits: see docs/cleaning.md.

Depth and attributes are counted without parsing: tags are read as browsers tokenize them (WHATWG HTML, 13.2.5), each
once, so the time is always linear. Comments, scripts and other text that is not markup are skipped. If a library fails,
the page is rejected and the run continues.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Sequence

import numpy as np

from corpusforge import errors
from corpusforge.arrays import I64, U8, U64
from corpusforge.text import bytes_in

PRECISE = "trafilatura"


class PageRefused(Exception):
    """No text can be extracted from a page; ``reason`` and ``detail`` are those of its reject."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


def check_html(html: str) -> None:
    """Raise `errors.ExtraMissing` where the library of this setting is not installed."""
    if html == PRECISE and importlib.util.find_spec("trafilatura") is None:
        mend = "install it: pip install 'corpusforge[html]', or use --html main"
        raise errors.ExtraMissing("input.html", "the package 'trafilatura' is not installed", mend)


def page_text(page: str, html: str) -> str:
    """The text of a page, "" where it has none. Raises `PageRefused`."""
    if excess := excess_of(page, html):
        raise PageRefused("record:too-large", excess)
    return _by_trafilatura(page) if html == PRECISE else _by_resiliparse(page, html)


def _by_resiliparse(page: str, html: str) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return extract_plain_text(page, preserve_formatting=True, main_content=html == "main")  # type: ignore[no-any-return]


def _by_trafilatura(page: str) -> str:
    """Main content, with precision before recall. Without ``deduplicate``, which remembers earlier pages."""
    import trafilatura

    try:
        text = trafilatura.extract(page, favor_precision=True, include_comments=False, deduplicate=False)
    except Exception as error:  # it raises whatever its libraries raise
        line = (str(error).splitlines() or [""])[0]
        raise PageRefused("record:unreadable", f"trafilatura: {type(error).__name__} {line}"[:300]) from None
    return text or ""


MOST_TAGS = 1 << 20
"""Tags of a page, counted by "<": 0.6 GB when parsed."""

MOST_TAGS_PRECISE = 1 << 17
"""The same for trafilatura 2.3, which takes quadratic time on some pages (15,000 tags: 3 s)."""

DEEPEST = 512
"""Nested elements, as in browsers (Chromium, ``kMaximumHTMLParserDOMTreeDepth``)."""

DEEPEST_LISTS = 64
"""Nested lists, on pages with many: text indented by 128 spaces. The deepest of 1,069 real pages has 9."""

MOST_STEPS = 1 << 28
"""Tags times depth: 2 s. The largest of 1,069 real pages has 5,129,631, of drawings whose elements have no end tags."""

MOST_ATTRIBUTES = 1024
"""Attributes of a tag: 5 ms. None of 1,069 real pages has a tag with 512."""

_SMALL = 1 << 17
"""Characters of a page whose attributes need not be counted: one tag of that length takes 1 s."""

_NESTING = ("div", "article")
"""Elements whose depth slows the search for the main content (40 of HTML's elements were tried)."""

_LISTS = ("ul", "ol")
_CHEAP = 1 << 24
"""Begin tags of such elements, times tags, that take little time (0.3 s) and memory (32 MB) at any depth."""

_LIKELY = re.compile("<[dDaA][iIrR]")
"""What `_NESTING` elements begin with: pages with few of these are not examined further."""

_LIKELY_LISTS = re.compile("<[uUoO][lL]")


def excess_of(page: str, html: str) -> str | None:
    """What in a page exceeds the limits of a setting ("main", "all", "trafilatura"), or None.

    >>> excess_of("<div>" * 600, "main"), excess_of("<div></div>" * 600, "main")
    ('div and article 600 deep, where 512 are the most', None)
    """
    most = MOST_TAGS_PRECISE if html == PRECISE else MOST_TAGS
    tags = page.count("<")
    if tags > most:
        return f"{tags} tags, where {most} are the most"
    if len(page) > _SMALL and has_long_tag(page, MOST_ATTRIBUTES):
        return f"a tag of more than {MOST_ATTRIBUTES} attributes"
    if tags * tags > MOST_STEPS and tags * (deep := depth(page, without=IMPLIED)) > MOST_STEPS:
        return f"{tags} tags {deep} deep, where {MOST_STEPS // tags} are the most"
    if (deep := _deep_lists(page, tags)) > DEEPEST_LISTS:
        return f"lists {deep} deep, where {DEEPEST_LISTS} are the most"
    if html == "main" and (deep := _deep_blocks(page, tags)) > DEEPEST:
        return f"div and article {deep} deep, where {DEEPEST} are the most"
    return None


def _deep_lists(page: str, tags: int) -> int:
    """How deep lists are nested; 0 where there are too few to matter."""
    lists = len(_LIKELY_LISTS.findall(page))
    if lists <= DEEPEST_LISTS or lists * tags <= _CHEAP:
        return 0
    return depth(page, names=_LISTS)


def _deep_blocks(page: str, tags: int) -> int:
    """The same for `_NESTING`; end tags in comments are excluded where that matters."""
    blocks = len(_LIKELY.findall(page))
    if blocks <= DEEPEST:
        return 0
    deep = depth_as_written(page, names=_NESTING)
    return deep if deep > DEEPEST or blocks * tags <= _CHEAP else depth(page, names=_NESTING)


_NAMES = (
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
    " p li dd dt option td th tr tbody thead tfoot colgroup html head body"
)
IMPLIED = tuple(_NAMES.split())
"""Void elements, and those that end where the next of their kind begins: they are nested only by way of others (WHATWG
HTML, 13.1.2 and 13.1.2.4)."""

_RAW = "script|style|textarea|title|xmp|iframe|noembed|noframes"
"""Elements whose content is always text, never markup."""

_FOREIGN = re.compile("<(?:svg|math)", re.IGNORECASE)
_LONG = re.compile("<[a-zA-Z/][^>]{2000}")

_ATTRIBUTE = r"""[^\s/>][^\s/>=]*+(?:="[^"]*+"|\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)?+"""
_ATTRIBUTES = rf"(?:[\s/]*+{_ATTRIBUTE})*+[\s/]*+"

_COMMENT = r"!--(?:-?+>|.*?(?:--!?+>|\Z))"
_PLAIN = rf"{_COMMENT}|(/?+[a-z][^\s/>]*+){_ATTRIBUTES}"
_TAGS = re.compile(rf"<(?:({_RAW})(?=[\s/>]){_ATTRIBUTES}.*?(?:</\1|\Z)|{_PLAIN})", re.DOTALL | re.IGNORECASE)
_TAGS_FOREIGN = re.compile(rf"<()(?:{_PLAIN})", re.DOTALL | re.IGNORECASE)
"""What begins with "<". The second group is the name of a tag; replaced by this name, the match hides no other tag."""

_NAME = 8  # bytes of a name that are compared
_LETTERS = bytes_in(range(0x30, 0x3A), range(0x61, 0x7B), b"-")


def has_long_tag(page: str, most: int) -> bool:
    """Whether a tag has more than ``most`` attributes.

    >>> has_long_tag("<p a b=c d='> e'>", 2), has_long_tag("<p a b=c d='> e'>", 3)
    (True, False)
    """
    if _short_tags(most, True).match(page).end() < len(page):  # type: ignore[union-attr]
        return True
    # In SVG and MathML a script is an element like any other, so what looks like a tag in it may be one.
    foreign = _FOREIGN.search(page) is not None and _LONG.search(page) is not None
    return foreign and _short_tags(most, False).match(page).end() < len(page)  # type: ignore[union-attr]


@functools.cache
def _short_tags(most: int, scripts: bool) -> re.Pattern[str]:
    """Matches up to a tag with more attributes; possessive, so that nothing is tried twice."""
    attributes = rf"(?:[\s/]*+{_ATTRIBUTE}){{0,{most}}}+[\s/]*+"
    # Not one group with a reference back: within possessive quantifiers CPython 3.11 fails at groups (gh-101955).
    raw = "|".join(rf"{name}(?=[\s/>]){attributes}(?:>[^<]*+(?:<(?!/{name})[^<]*+)*+|\Z)" for name in _RAW.split("|"))
    hidden = rf"(?=[!stxin])(?:{_COMMENT}|{raw})|" if scripts else ""
    tag = rf"/?+[a-z][^\s/>]*+{attributes}(?:>|\Z)"
    return re.compile(rf"(?:[^<]++|<(?:{hidden}{tag}|(?!/?+[a-z])))*+", re.DOTALL | re.IGNORECASE)


def depth(page: str, *, names: Sequence[str] = (), without: Sequence[str] = ()) -> int:
    """The depth of nested elements: of these names only, or of all names but some.

    An end tag ends the last element of its name; one without a begin tag is ignored.

    >>> depth("<div><!--</div>--><DIV></p><b>"), depth("<div><!--</div>--><DIV><b>", names=["div"])
    (3, 2)
    """
    deepest = depth_as_written(_TAGS.sub(r"<\2", page), names, without)
    if _FOREIGN.search(page):  # where "title" and "style" may hold other elements
        deepest = max(deepest, depth_as_written(_TAGS_FOREIGN.sub(r"<\2", page), names, without))
    return deepest


def depth_as_written(page: str, names: Sequence[str] = (), without: Sequence[str] = ()) -> int:
    """The same if every "<" with a name begins a tag, in comments too: ten times as fast."""
    data = np.frombuffer(page.encode("utf-8", "replace") + bytes(2 * _NAME), np.uint8)
    tags = np.flatnonzero(data == ord("<"))
    closing = data[tags + 1] == ord("/")
    keys = _keys(data, tags + 1 + closing)
    counts = np.isin(keys, _keys_of(names)) if names else ~np.isin(keys, _keys_of(without))
    chosen = np.flatnonzero(counts & (keys != 0))
    return int(np.cumsum(_effective(keys[chosen], np.where(closing[chosen], -1, 1))).max(initial=0))


def _keys(data: U8, starts: I64) -> U64:
    """The first bytes of the names at some offsets, in lower case, as numbers; 0 where there is no name."""
    names = data[starts[:, None] + np.arange(_NAME)]
    names = names | ((names >= 0x41) & (names <= 0x5A)).astype(np.uint8) << 5
    inside = np.logical_and.accumulate(_LETTERS[names], axis=1)
    inside &= (names[:, :1] >= 0x61) & (names[:, :1] <= 0x7A)
    return np.ascontiguousarray(names * inside).view("<u8")[:, 0].astype(np.uint64)


def _keys_of(names: Sequence[str]) -> U64:
    return np.array([int.from_bytes(name.encode()[:_NAME], "little") for name in names], np.uint64)


def _effective(keys: U64, steps: I64) -> I64:
    """Steps without end tags that end nothing: each name is a walk of its own that stays at 0 or above."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    group = np.cumsum(np.diff(ordered, prepend=ordered[:1]) != 0)
    # Every walk begins far below the previous one, so the lowest level so far is that of the walk itself.
    fall = np.int64(2 * len(keys) + 2)
    level = np.cumsum(steps[order])
    first = np.searchsorted(group, np.arange(group[-1] + 1 if len(group) else 0))
    base = np.concatenate([[0], level])[first]
    level = level - base[group] - group * fall
    floor = np.minimum(np.minimum.accumulate(level), -group * fall)
    height = level - floor
    effective = np.diff(height, prepend=0)
    effective[first] = height[first]
    out = np.empty(len(keys), np.int64)
    out[order] = effective
    return out
