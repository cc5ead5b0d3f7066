"""How deep div and article lie in each other, one tag at a time."""

from __future__ import annotations

import re


def depth(page: str) -> int:
    """The most of them open at once; an end without a beginning is passed over."""
    level = most = 0
    for tag in re.finditer(r"<(/?)(div|article)", page, re.IGNORECASE | re.ASCII):
        level = max(0, level - 1) if tag[1] else level + 1
        most = max(most, level)
    return most
