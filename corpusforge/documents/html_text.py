"""The text of an HTML page, by one of three ways.

Comes in: a decoded page and the setting ``input.html``: "main" (its main content, by resiliparse), "all" (all of its
text, by resiliparse) or "trafilatura" (its main content, slower and more precise). Goes out: text. The one decision: a
page that would take the machine down is refused before it is parsed (`corpusforge.documents.html_limits`), and what a
library fails at is a reason of that page, never an end of the run.
"""

from __future__ import annotations

import importlib.util

from corpusforge import errors
from corpusforge.documents.html_limits import excess_of

PRECISE = "trafilatura"


class PageRefused(Exception):
    """No text can be taken out of a page; ``reason`` and ``detail`` are those of its reject."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


def check_html(html: str) -> None:
    """Raise `errors.ExtraMissing` where the library of this setting is not installed."""
    if html == PRECISE and importlib.util.find_spec("trafilatura") is None:
        mend = "install it: pip install 'corpusforge[html]', or take --html main"
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
    """Its own rules at their most precise. Without ``deduplicate``, which remembers the pages before this one."""
    import trafilatura

    try:
        found = trafilatura.extract(page, favor_precision=True, include_comments=False, deduplicate=False)
    except Exception as error:  # it raises whatever its libraries raise
        line = (str(error).splitlines() or [""])[0]
        raise PageRefused("record:unreadable", f"trafilatura: {type(error).__name__} {line}"[:300]) from None
    return found or ""
