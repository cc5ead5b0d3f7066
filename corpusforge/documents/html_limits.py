"""Pages of HTML that would take the memory or the time of thousands: told before they are parsed.

Comes in: a decoded page. Goes out: what is too much in it, or None. The one decision: counts of tags and attributes
bound what parsing can cost. Measured with resiliparse 2.0: a parsed element takes 300 to 560 bytes, so 8 MiB of
``<p>a`` take 1.2 GB; the attributes of a tag are compared with each other (32,000 of them: 2 s); what closes an element
walks up through all that it lies in (7 ns each: 40,000 ``<span>`` with 40,000 ``<hr>``: 12 s); a line of a list is
indented by its depth (60,000 ``<ul>``: 3.6 GB of text); finding the main content takes the product of elements and the
depth of ``div`` and ``article``, so 200 KB of ``<div>`` take 30 s. Real pages stay far below: see docs/cleaning.md.
"""

from __future__ import annotations

import re

from corpusforge.documents.html_tags import IMPLIED, depth, depth_as_written, has_long_tag

MOST_TAGS = 1 << 20
"""Tags of a page, counted by "<": 0.6 GB when parsed."""

MOST_TAGS_PRECISE = 1 << 17
"""The same for trafilatura 2.3, whose time grows with the square of some pages' length (15,000 tags: 3 s)."""

DEEPEST = 512
"""Elements inside each other, as browsers have it (Chromium, ``kMaximumHTMLParserDOMTreeDepth``)."""

DEEPEST_LISTS = 64
"""Lists inside each other, on pages with many: text of 128 spaces a line. Of 1,069 real pages the deepest has 9."""

MOST_STEPS = 1 << 28
"""Tags times depth: 2 s. Of 1,069 real pages the most are 5,129,631, drawings whose elements have no end tags."""

MOST_ATTRIBUTES = 1024
"""Attributes of a tag: 5 ms. Of 1,069 real pages none has a tag with 512."""

_SMALL = 1 << 17
"""Characters of a page whose attributes need no look: all of it one tag takes 1 s."""

_NESTING = ("div", "article")
"""Elements whose depth the search for the main content pays for (tried: 40 of HTML's elements)."""

_LISTS = ("ul", "ol")
_CHEAP = 1 << 24
"""Beginnings of such elements, times tags, that take no time (0.3 s) and little memory (32 MB) at any depth."""

_LIKELY = re.compile("<[dDaA][iIrR]")
"""What `_NESTING` elements begin with: pages with few of these need no closer look."""

_LIKELY_LISTS = re.compile("<[uUoO][lL]")


def excess_of(page: str, html: str) -> str | None:
    """What is too much in a page for a way to take its text out ("main", "all", "trafilatura").

    >>> excess_of("<div>" * 600, "main"), excess_of("<div></div>" * 600, "main")
    ('div and article 600 deep, where 512 are the most', None)
    """
    most = MOST_TAGS_PRECISE if html == "trafilatura" else MOST_TAGS
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
    """How deep lists lie in each other; 0 where there are too few to matter."""
    lists = len(_LIKELY_LISTS.findall(page))
    if lists <= DEEPEST_LISTS or lists * tags <= _CHEAP:
        return 0
    return depth(page, names=_LISTS)


def _deep_blocks(page: str, tags: int) -> int:
    """The same of `_NESTING`; ends in comments are looked at closely where that matters."""
    blocks = len(_LIKELY.findall(page))
    if blocks <= DEEPEST:
        return 0
    deep = depth_as_written(page, names=_NESTING)
    return deep if deep > DEEPEST or blocks * tags <= _CHEAP else depth(page, names=_NESTING)
