"""Pages of HTML that would take the memory or the time of thousands: told before they are parsed.

Comes in: a decoded page. Goes out: what is too much in it, or None. The one decision: two counts of tags bound what
parsing can cost. Measured with resiliparse 2.0: a parsed element takes 300 to 560 bytes, so 8 MiB of ``<p>a`` take
1.2 GB; finding the main content takes the product of elements and the depth of ``div`` and ``article``, so 200 KB of
``<div>`` take 30 s. Real pages stay below: of 1,053 the largest has 70,535 tags, the deepest are 206 and 59 deep.
"""

from __future__ import annotations

import re

import numpy as np

from corpusforge.text import U8

MOST_TAGS = 1 << 20
"""Tags of a page, counted by "<": 0.6 GB when parsed."""

MOST_TAGS_PRECISE = 1 << 17
"""The same for trafilatura 2.3, whose time grows with the square of some pages' length (15,000 tags: 3 s)."""

DEEPEST = 512
"""Elements inside each other, as browsers have it (Chromium, ``kMaximumHTMLParserDOMTreeDepth``)."""

_NESTING = (b"div", b"article")
"""Elements whose depth the search for the main content pays for (tried: 40 of HTML's elements)."""

_LIKELY = re.compile("<[dDaA][iIrR]")
"""What `_NESTING` elements begin with: pages with few of these need no closer look."""


def excess_of(page: str, html: str) -> str | None:
    """What is too much in a page for a way to take its text out ("main", "all", "trafilatura").

    >>> excess_of("<div>" * 600, "main"), excess_of("<div></div>" * 600, "main")
    ('div and article 600 deep, where 512 are the most', None)
    """
    most = MOST_TAGS_PRECISE if html == "trafilatura" else MOST_TAGS
    if len(page) > most and (tags := page.count("<")) > most:
        return f"{tags} tags, where {most} are the most"
    if html != "main" or len(_LIKELY.findall(page)) <= DEEPEST:
        return None
    depth = _depth(np.frombuffer(page.encode("utf-8", "replace") + bytes(16), np.uint8))
    return f"div and article {depth} deep, where {DEEPEST} are the most" if depth > DEEPEST else None


def _depth(data: U8) -> int:
    """How deep the nesting elements lie in each other; ends without a beginning count for nothing."""
    tags = np.flatnonzero(data == ord("<"))
    closing = data[tags + 1] == ord("/")
    names = tags + 1 + closing
    steps = np.zeros(len(tags), np.int64)
    for name in _NESTING:
        matches = np.ones(len(tags), bool)
        for place, letter in enumerate(name):
            matches &= data[names + place] | 0x20 == letter
        steps[matches] = np.where(closing[matches], -1, 1)
    level = np.cumsum(steps)
    return int((level - np.minimum(np.minimum.accumulate(level), 0)).max(initial=0))
