"""Pages that a crawl holds besides articles: each is here so that one rule has something to find.

Comes in: the articles. Goes out: `Odd` pages, named for what is odd about them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dressing import Article, Block, dress


@dataclass(frozen=True)
class Odd:
    """A page with its blocks; ``why`` is for people who read the script."""

    why: str
    url: str
    date: str
    title: str
    blocks: tuple[Block, ...]


_LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore"
    " magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo."
)
_FOUL = (
    "You are a clodgrubber and the son of a turnip, and everyone in this thread knows it.",
    "Oh, go and boil your head, you flurbwit, nobody asked for your opinion about the goalkeeper.",
    "I have seldom read such toadspittle, and I have been reading this forum for eleven years.",
    "What a skeezlewort you must be if you think that the referee was right about that.",
    "Every grotmuncher with a keyboard believes that he could run the club better than the board.",
    "My cousin says that the new captain is a flurbing disgrace, and my cousin is never wrong.",
)
_CIVIL = (
    "The match on Saturday was decided by a single mistake in the last minute of play.",
    "Most of those who wrote to us afterwards were of the opinion that the better side had lost.",
    "It rained from the beginning to the end, and the groundsman has asked for new drains again.",
)
_TUTORIALS = (
    (
        "A first program",
        "A program is a list of things that the machine is to do, one after the other.",
        "In many languages the smallest program looks like int main(void) { return 0; } and does nothing.",
        "Type it in, save the file, and ask the compiler to translate it for you.",
        "If it complains, you have most likely forgotten a semicolon or a bracket somewhere.",
    ),
    (
        "Giving colours to a page",
        "A style sheet says how the parts of a page should look, and nothing about what they mean.",
        "To make every heading green you write h1 { color: green; } at the top of the file.",
        "Save it under a short name and mention that name in the head of your page.",
        "Reload the page, and the headings ought to have changed their colour.",
    ),
    (
        "Settings in a file",
        "Many programs keep their settings in a plain text file that you may change by hand.",
        'A setting is written with its name and its value, for example { "theme": "dark" }.',
        "Make a copy of the file before you start, so that you can go back.",
        "After a restart the program will read the file again and follow your wishes.",
    ),
)
_GALLERIES = (
    ("Pictures of our summer fair", "Here are some pictures of the summer fair behind the church."),
    ("New opening hours", "From next month on the shop will be closed on Wednesday afternoons."),
    ("Under construction", "This page is still empty, but it will not stay so for very long."),
    ("Lost: one grey cat", "She answers to the name of Duchess and has a white spot on her chest."),
)


def oddities(articles: list[Article]) -> list[Odd]:
    """All of them, in a fixed order."""
    english = [a for a in articles if a.language == "en"]
    return [
        *_placeholders(english),
        *_tutorials(),
        *_foul_pages(),
        *_galleries(),
        *_endless_words(english),
        *_copies(english),
        _menu_with_brace(english[3]),
        _endless_page(),
        Odd("no text at all", "http://www.blank.example/", "2020-01-01", "", ()),
        Odd("only lines without an end mark", "http://www.lists.example/", "2020-01-02", "Index", _index(articles)),
    ]


def _p(*lines: str) -> tuple[Block, ...]:
    return tuple(Block("p", line) for line in lines)


def _framed(title: str, *blocks: Block) -> tuple[Block, ...]:
    return (Block("nav", "Home | Help"), Block("heading", title), *blocks, Block("footer", "© the authors"))


def _placeholders(english: list[Article]) -> list[Odd]:
    found = []
    for number, article in enumerate(english[5:8]):
        blocks = dress(article)
        blocks.insert(5, Block("p", _LOREM))
        url = f"http://www.templates.example/demo/{number}"
        found.append(Odd("lorem ipsum", url, article.date, article.title, tuple(blocks)))
    return found


def _tutorials() -> list[Odd]:
    found = []
    for number, (title, *lines) in enumerate(_TUTORIALS):
        url, date = f"http://learn.example/{number}", f"2020-05-{number + 1:02d}"
        found.append(Odd("code with a brace", url, date, title, _framed(title, *_p(*lines))))
    return found


def _foul_pages() -> list[Odd]:
    found = []
    for number in range(4):
        lines = (*_CIVIL, _FOUL[number], _FOUL[(number + 2) % 6])
        url = f"http://forum.terraces.example/thread/{number}"
        blocks = _framed("What went wrong on Saturday", *_p(*lines))
        found.append(Odd("foul words", url, f"2021-10-{number + 10}", "What went wrong on Saturday", blocks))
    return found


def _galleries() -> list[Odd]:
    return [
        Odd(
            "fewer than three sentences",
            f"http://www.noticeboard.example/{number}",
            f"2019-03-{number + 1:02d}",
            title,
            _framed(title, *_p(sentence), Block("list", "Picture 1"), Block("list", "Picture 2")),
        )
        for number, (title, sentence) in enumerate(_GALLERIES)
    ]


def _endless_words(english: list[Article]) -> list[Odd]:
    found = []
    for number, article in enumerate(english[10:12]):
        key = "".join("ACDEFHKMNPRTVWXY"[(k * k + 7 * k + number) % 16] for k in range(1200))
        line = f"The complete key of the signature reads {key} and must be copied without a mistake."
        blocks = [*dress(article)[:-1], Block("p", line), Block("footer", "© the authors")]
        url = f"http://signed.example/{number}"
        found.append(Odd("a word over 1,000 characters", url, article.date, article.title, tuple(blocks)))
    return found


def _copies(english: list[Article]) -> list[Odd]:
    """Exact copies on other sites, and near copies: a sentence in front, another order, a part left out."""
    found = []
    for number, article in enumerate(english[:6]):
        url = f"http://www.reprints.example/{number}"
        found.append(Odd("exact copy", url, "2022-12-01", article.title, tuple(dress(article))))
    for number, article in enumerate(english[14:22]):
        first, *rest = article.paragraphs
        changed = (
            (f"A reader has sent us the following piece, which we print with pleasure. {first}", *rest),
            (*rest, first),
            (first, *rest[:-1], "The rest of this article has not been kept by the archive."),
            (first.replace(". ", "! ", 1), *rest),
        )[number % 4]
        copy = replace(article, url=f"http://mirror.example/{number}", paragraphs=changed)
        found.append(Odd("near copy", copy.url, "2022-12-02", article.title, tuple(dress(copy))))
    return found


def _menu_with_brace(article: Article) -> Odd:
    """A brace in a line that is dropped anyway: the page stays (spec of the rule: only lines that survived count)."""
    copy = replace(article, url="http://braces.example/kept", paragraphs=article.paragraphs[::-1])
    blocks = [*dress(copy)[:-1], Block("list", "{{ next_page }}"), Block("footer", "© the authors")]
    return Odd("a brace in a menu", copy.url, "2021-06-06", article.title, tuple(blocks))


def _endless_page() -> Odd:
    """More than 190,000 characters: a gauge's readings. The months repeat, so that it compresses well."""
    line = "On day {} of the month the gauge at the upper lock stood at {} centimetres, and the water was {}."
    month = [line.format(d, 80 + (d * 37) % 53, ("clear", "brown", "low", "high")[d % 4]) for d in range(1, 31)]
    lines = month * (195_000 // sum(len(text) + 1 for text in month) + 1)
    return Odd(
        "a page over 190,000 characters",
        "http://www.gauges.example/upper-lock",
        "2018-01-31",
        "Readings of the gauge",
        _framed("Readings of the gauge", *_p(*lines)),
    )


def _index(articles: list[Article]) -> tuple[Block, ...]:
    return _framed("Index", *(Block("list", f"{a.title} ({a.date[:4]})") for a in articles[:40]))
