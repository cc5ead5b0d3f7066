"""Sentences in many languages, written for these tests, and excerpts of real text of page size."""

from __future__ import annotations

import gzip
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

SENTENCES = {
    "en": "The weather was fine on the day that we walked along the river to the old mill.",
    "de": "Das Wetter war schön an dem Tag, an dem wir am Fluss entlang zur alten Mühle gingen.",
    "fr": "Il faisait beau le jour où nous avons marché le long de la rivière jusqu'au vieux moulin.",
    "es": "Hacía buen tiempo el día en que caminamos por la orilla del río hasta el viejo molino.",
    "nl": "Het weer was mooi op de dag dat we langs de rivier naar de oude molen liepen.",
    "pl": "Pogoda była ładna w dniu, w którym szliśmy wzdłuż rzeki do starego młyna.",
    "ro": "Vremea era frumoasă în ziua în care am mers de-a lungul râului până la moara veche, și toți țineau pasul.",
    "tr": "Nehir boyunca eski değirmene yürüdüğümüz gün hava çok güzeldi.",
    "vi": "Thời tiết rất đẹp vào ngày chúng tôi đi dọc theo bờ sông đến cối xay cũ.",
    "ru": "Погода была хорошая в тот день, когда мы шли вдоль реки к старой мельнице.",
    "el": "Ο καιρός ήταν καλός την ημέρα που περπατήσαμε κατά μήκος του ποταμού.",
    "ar": "كان الطقس جميلا في اليوم الذي مشينا فيه على طول النهر إلى الطاحونة القديمة.",
    "fa": "روزی که ما در کنار رودخانه به سوی آسیاب قدیمی رفتیم هوا خوب بود.",
    "hi": "जिस दिन हम नदी के किनारे पुरानी चक्की तक गए उस दिन मौसम अच्छा था।",
    "th": "วันที่เราเดินเลียบแม่น้ำไปยังโรงสีเก่าอากาศดีมาก",
    "ja": "川に沿って古い水車まで歩いた日は、とても良い天気でした。",
    "ko": "우리가 강을 따라 오래된 방앗간까지 걸었던 날은 날씨가 좋았다.",
    "zh": "我们沿着河走到旧磨坊的那天天气很好。大家都很高兴，说说笑笑。",
    "zh-tw": "我們沿著河走到舊磨坊的那天天氣很好。大家都很高興，說說笑笑。",
}
"""About the same sentence in many languages and scripts."""


def pages_of(data: Path, count: int) -> list[str]:
    """``count`` excerpts of real text: web pages, books, encyclopedias and oddities."""
    pages = [page for page in _pages(data) if page.strip()]
    return [pages[k * len(pages) // count].encode("utf-8", "replace").decode() for k in range(count)]


def _pages(data: Path) -> Iterator[str]:
    for line in (data / "web_text" / "oscar-io-data.jsonl").open(encoding="utf-8"):
        yield from _excerpts(json.loads(line)["content"], 12_000)
    with zipfile.ZipFile(data / "text_en" / "nltk-genesis.zip") as books:
        for name in sorted(books.namelist()):
            yield from _excerpts(books.read(name).decode("utf-8", "replace")[:60_000], 1_500)
    for path in ("text_en/enwiki-multidump-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"):
        with gzip.open(data / path, "rt", encoding="utf-8") as file:
            for _, line in zip(range(400), file, strict=False):
                yield from _excerpts(json.loads(line)["text"][:8_000], 2_500)
    with tarfile.open(data / "nasty" / "chardet-tests.tar.gz") as archive:
        for number, member in enumerate(archive):
            if file := archive.extractfile(member):
                yield file.read()[:6_000].decode(("utf-8", "cp1251", "euc-jp", "latin-1")[number % 4], "replace")
    yield from json.loads((data / "nasty" / "blns.json").read_text("utf-8"))
    yield (data / "nasty" / "ungoliant-garbage.txt").read_text("utf-8", "replace")


def _excerpts(text: str, size: int) -> Iterator[str]:
    yield from (text[k : k + size] for k in range(0, len(text), size))
