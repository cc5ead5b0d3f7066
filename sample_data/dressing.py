"""What the web puts around a text: menus, notices, citations, boilerplate.

Comes in: an `Article`. Goes out: a list of blocks, and from them an HTML page or the lines of a WET record. Which
dressing an article gets is a function of its URL alone.
"""

from __future__ import annotations

import html
import re
import zlib
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Article:
    """A text of ``texts/``. ``paragraphs``: without white space around them, no line breaks inside."""

    title: str
    url: str
    date: str
    language: str
    paragraphs: tuple[str, ...]

    @property
    def host(self) -> str:
        """The site without ``www.``"""
        return self.url.split("/")[2].removeprefix("www.")

    @property
    def text(self) -> str:
        """Title and paragraphs, one line each."""
        return "\n".join((self.title, *self.paragraphs))


@dataclass(frozen=True)
class Block:
    """A piece of a page: ``kind`` is nav, notice, heading, p, quote, code, list, aside or footer."""

    kind: str
    text: str


def load(folder: Path) -> list[Article]:
    """The articles of all files of a folder: a heading line ``# title | url | date | language``, then paragraphs."""
    articles = []
    for path in sorted(folder.glob("*.txt")):
        for part in re.split(r"^# ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            heading, _, body = part.partition("\n")
            title, url, date, language = (field.strip() for field in heading.split("|"))
            paragraphs = tuple(" ".join(p.split()) for p in body.split("\n\n") if p.strip())
            articles.append(Article(title, url, date, language, paragraphs))
    return articles


def pick(key: str, what: str, count: int) -> int:
    """A number below ``count`` that depends on the two strings alone."""
    return zlib.crc32(f"{what} {key}".encode()) % count


_MENUS = {
    "en": "Home | Articles | Archive | About us | Contact",
    "de": "Startseite | Artikel | Archiv | Impressum",
    "fr": "Accueil | Articles | Archives | Contact",
    "es": "Inicio | Noticias | Archivo | Contacto",
    "zh": "首页 | 文章 | 归档 | 关于我们",
}
_NOTICES = (
    "This site uses cookies so that we can count how many people read each page.",
    "By reading on you agree to our terms of use and to nothing else.",
    "Our privacy policy explains what we store about you and for how long.",
    "Please switch on JavaScript in your browser, or the pictures will not be shown.",
    "We have changed our cookie policy and would like you to look at it once.",
    "The use of cookies on this page can be switched off in the settings.",
)
_TAILS = (
    "Read more...",
    "Continue reading in the next part of this series...",
    "Share this page with a friend",
    "Posted in: Everyday things, Older entries",
    "3 comments",
    "Nice post!",
    "Thank you, very interesting.",
    "Print this page",
)
_BOILERPLATE = dict(
    line.split("\t", 1)
    for line in (Path(__file__).parent / "boilerplate.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
)


def cite(paragraph: str, key: str) -> str:
    """Put an encyclopedia's citation marks behind some sentences of a paragraph."""
    number = 1 + pick(key, "citation", 30)
    marks = (f"[{number}]", f"[{number}][{number + 1}]", "[citation needed]", "[edit]")
    mark = marks[pick(key, "mark", 9) % 4 if pick(key, "mark", 9) < 4 else 0]
    cut = paragraph.find(". ") + 1
    if cut and pick(key, "where", 2):
        return paragraph[:cut] + mark + paragraph[cut:]
    return paragraph + mark


def dress(article: Article) -> list[Block]:
    """The blocks of an article's page, in the order in which a reader sees them."""
    key, language = article.url, article.language
    blocks = [Block("nav", _MENUS.get(language, _MENUS["en"]))]
    if language == "en" and pick(key, "notice first", 2):
        blocks.append(Block("notice", _NOTICES[pick(key, "notice", 6)]))
    blocks.append(Block("heading", article.title))
    blocks.append(Block("aside", f"{article.date} | {article.host}"))
    for number, paragraph in enumerate(article.paragraphs):
        cited = language == "en" and pick(f"{key}{number}", "cited", 5) == 0
        blocks.append(Block("p", cite(paragraph, f"{key}{number}") if cited else paragraph))
        if language == "en" and number == 1 and pick(key, "notice inside", 4) == 0:
            blocks.append(Block("p", _NOTICES[pick(key, "inside", 6)]))
    about = _BOILERPLATE.get(language) or _BOILERPLATE.get(article.host)
    if about:
        blocks.append(Block("p", about))
    if language == "en" and pick(key, "newsletter", 4) == 0:
        blocks.append(Block("p", _BOILERPLATE["newsletter"]))
    if language == "en":
        blocks += [Block("list", _TAILS[(pick(key, "tail", 8) + step) % 8]) for step in range(2)]
    blocks.append(Block("footer", f"© {article.date[:4]} {article.host}"))
    return blocks


def as_lines(blocks: list[Block]) -> str:
    """A page as a WET record has it: one line a block, menus item by item."""
    lines: list[str] = []
    for block in blocks:
        lines += block.text.split(" | ") if block.kind == "nav" else block.text.split("\n")
    return "\n".join(lines) + "\n"


_WRAP = {
    "notice": '<div class="banner"><p>{}</p></div>',
    "heading": "<h1>{}</h1>",
    "aside": '<p class="date"><small>{}</small></p>',
    "p": "<p>{}</p>",
    "quote": "<blockquote><p>{}</p></blockquote>",
    "code": "<pre><code>{}</code></pre>",
    "list": "<ul><li>{}</li></ul>",
    "footer": "<footer><p>{}</p></footer>",
}


def as_html(blocks: list[Block], *, title: str, language: str, charset: str = "utf-8", layout: int = 0) -> str:
    """A page as HTML in one of three layouts: HTML 5, nested divisions, a table of the old days."""
    parts = []
    for block in blocks:
        if block.kind == "nav":
            links = "".join(
                f'<li><a href="/{n}">{html.escape(t)}</a></li>' for n, t in enumerate(block.text.split(" | "))
            )
            parts.append(f"<nav><ul>{links}</ul></nav>")
        else:
            parts.append(_WRAP[block.kind].format(html.escape(block.text)))
    nav, body, footer = parts[0], "\n".join(parts[1:-1]), parts[-1]
    middle = (
        f"<header>{nav}</header>\n<main><article>\n{body}\n</article></main>\n{footer}",
        f'<div id="page"><div class="menu">{nav}</div>\n<div id="content" class="post">\n{body}</div>\n{footer}</div>',
        f'<table width="100%"><tr><td width="20%">{nav}</td><td class="content">\n{body}\n</td></tr></table>\n{footer}',
    )[layout]
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n'
        f'<head><meta charset="{charset}"><title>{html.escape(title)}</title>\n'
        "<style>body { font-family: serif; } nav li { display: inline; }</style>\n"
        '<script>var loaded = { page: true }; document.title += "";</script></head>\n'
        f"<body>\n<noscript>JavaScript is switched off in your browser.</noscript>\n{middle}\n</body></html>\n"
    )


def page(article: Article, **changes: str) -> str:
    """The HTML page of an article, dressed; ``changes`` are laid over the article's fields first."""
    changed = replace(article, **changes)
    layout = pick(changed.host, "layout", 3)
    return as_html(dress(changed), title=changed.title, language=changed.language, layout=layout)
