"""Assemble the raw crawl and the minimal pairs from the texts: ``python sample_data/build.py [FOLDER]``.

Comes in: ``texts/*.txt``. Goes out: ``raw/`` and ``minimal_pairs/`` below FOLDER (default: this folder). The same
texts give the same bytes. Needs the standard library only.
"""

from __future__ import annotations

import gzip
import json
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import archives
from dressing import Article, as_html, as_lines, dress, load, page, pick
from oddities import Odd, oddities
from pairs import minimal_pairs

HERE = Path(__file__).parent
CRAWLED = "2023-02-01T00:00:00Z"


def moment(date: str, url: str) -> str:
    """An ISO time on a day; the clock time depends on the URL."""
    second = pick(url, "second", 86_400)
    return f"{date}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def share_out(articles: list[Article]) -> dict[str, list[Article]]:
    """Which article goes into which kind of file: of ten, six WARC, two WET, one JSONL, one a plain text file."""
    kinds = ("warc", "warc", "wet", "warc", "jsonl", "warc", "warc", "notes", "wet", "warc")
    shares: dict[str, list[Article]] = {"warc": [], "wet": [], "jsonl": [], "notes": []}
    english = [a for a in articles if a.language == "en"]
    for number, article in enumerate(english):
        shares[kinds[number % len(kinds)]].append(article)
    for number, article in enumerate(a for a in articles if a.language != "en"):
        shares["wet" if number % 3 == 2 else "warc"].append(article)
    return shares


def encoded(article: Article) -> bytes:
    """The response record of an article, now and then in an encoding or transfer coding of its own."""
    date, text = moment(article.date, article.url), page(article)
    if article.language in ("de", "fr", "es"):
        body = text.replace("utf-8", "iso-8859-1", 1).encode("latin-1", "xmlcharrefreplace")
        return archives.response(article.url, date, body, Content_Type="text/html; charset=ISO-8859-1")
    if article.language == "zh":
        name = ("utf-8", "gb18030", "utf-8")[pick(article.url, "encoding", 3)]
        body = text.replace("utf-8", name, 1).encode(name)
        return archives.response(article.url, date, body, Content_Type="text/html")
    choice = pick(article.url, "coding", 16)
    if choice == 0:
        body = text.replace("utf-8", "utf-16", 1).encode("utf-16")
        return archives.response(article.url, date, body, Content_Type="text/html; charset=utf-16")
    if choice == 1:
        body = gzip.compress(text.encode(), 9, mtime=0)
        return archives.response(article.url, date, body, Content_Encoding="gzip")
    if choice == 2:
        body = archives.chunked(text.encode())
        return archives.response(article.url, date, body, Transfer_Encoding="chunked")
    if choice == 3:
        body = text.replace("utf-8", "windows-1252", 1).encode("cp1252", "xmlcharrefreplace")
        return archives.response(article.url, date, body, Content_Type="text/html")
    return archives.response(article.url, date, text.encode())


def odd_response(odd: Odd) -> bytes:
    """The response record of an odd page."""
    blocks = list(odd.blocks)
    body = as_html(blocks, title=odd.title, language="en") if blocks else "<html><body></body></html>"
    return archives.response(odd.url, moment(odd.date, odd.url), body.encode())


def tiny_png() -> bytes:
    """A valid picture of one grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"\0\x80", 9)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def side_records(article: Article) -> list[bytes]:
    """What a crawler meets besides pages: a picture, a redirect, an error page, an unchanged page, broken records."""
    site = f"http://www.{article.host}"
    lost = as_html(list(dress(article)[:3]), title="Not found", language="en").encode()
    cut = gzip.compress(page(article).encode(), 9, mtime=0)[:400]
    broken = {"WARC-Target-URI": f"{site}/broken", "Content-Type": "application/http; msgtype=response"}
    return [
        archives.response(f"{site}/logo.png", CRAWLED, tiny_png(), Content_Type="image/png"),
        archives.response(f"{site}/old", CRAWLED, b"", status="301 Moved Permanently", Location=article.url),
        archives.response(f"{site}/nothing-here", CRAWLED, lost, status="404 Not Found"),
        archives.revisit(article.url, CRAWLED, page(article).encode()),
        archives.record("response", CRAWLED, b"\x16\x03\x01\x02\x00 this is no HTTP at all", broken),
        archives.response(f"{site}/cut-short", CRAWLED, cut, Content_Encoding="gzip"),
        archives.response(
            f"{site}/noise", CRAWLED, bytes(range(128, 256)) * 4, Content_Type="text/html; charset=utf-8"
        ),
    ]


def warc(articles: list[Article], odd: list[Odd]) -> bytes:
    """The whole of ``crawl.warc.gz``: articles and odd pages take turns."""
    members = [archives.warcinfo(CRAWLED, "crawl.warc.gz", "sample crawl written for CorpusForge, CC0")]
    waiting = list(odd)
    for number, article in enumerate(articles):
        if number % 8 == 0:
            members.append(archives.request(article.url, moment(article.date, article.url)))
        members.append(encoded(article))
        if waiting and number % 2:
            members.append(odd_response(waiting.pop(0)))
    members += [odd_response(page) for page in waiting]
    return b"".join(members + side_records(articles[0]))


def wet(articles: list[Article], odd: list[Odd]) -> bytes:
    """The whole of ``crawl.warc.wet.gz``."""
    members = [archives.warcinfo(CRAWLED, "crawl.warc.wet.gz", "sample crawl written for CorpusForge, CC0")]
    names = {"en": "eng", "de": "deu", "fr": "fra", "es": "spa", "zh": "zho"}
    for article in articles:
        when = moment(article.date, article.url)
        members.append(archives.conversion(article.url, when, as_lines(dress(article)), names[article.language]))
    for strange in odd:
        when, text = moment(strange.date, strange.url), as_lines(list(strange.blocks))
        members.append(archives.conversion(strange.url, when, text, "eng"))
    return b"".join(members)


def jsonl(articles: list[Article]) -> bytes:
    """``articles.jsonl``: text, url, timestamp; one line is cut short and one has no text."""
    rows = [
        json.dumps(
            {"text": article.text, "url": article.url, "timestamp": moment(article.date, article.url)},
            ensure_ascii=False,
        )
        for article in articles
    ]
    rows.insert(3, rows[2][:200])
    rows.insert(6, json.dumps({"url": "http://www.nothing.example/", "timestamp": CRAWLED}))
    return ("\n".join(rows) + "\n").encode()


def files() -> dict[str, bytes]:
    """Every file that is built, by its path below the output folder."""
    articles = load(HERE / "texts")
    shares, odd = share_out(articles), oddities(articles)
    in_wet = [page for page in odd if page.why in ("code with a brace", "near copy")]
    built = {
        "raw/crawl.warc.gz": warc(shares["warc"], [page for page in odd if page not in in_wet[:6]]),
        "raw/crawl.warc.wet.gz": wet(shares["wet"], in_wet[:6]),
        "raw/articles.jsonl": jsonl(shares["jsonl"]),
    }
    for article in shares["notes"]:
        name = article.url.rsplit("/", 1)[-1]
        built[f"raw/notes/{name}.txt"] = (article.text + "\n").encode()
    for name, rows in minimal_pairs().items():
        built[f"minimal_pairs/{name}.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return built


def main(folder: Path) -> None:
    """Write the files and say how much it was."""
    built = files()
    for name, data in built.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(built)} files, {sum(map(len, built.values())):,} bytes in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
