r"""Sentence boundaries as NLTK's Punkt finds them, from its English parameters, without importing NLTK.

Exact C4 counts sentences with Punkt. Importing NLTK takes a second, because it imports SciPy; only four text files and
the decision whether a token ends a sentence are needed. This module is that decision, a transcription of
``nltk/tokenize/punkt.py``, NLTK 3.10.4 (Kiss and Strunk, Computational Linguistics 32(4), 2006); the tests compare
every span with NLTK's own. NLTK compiles its expressions with the package ``regex``, whose classes differ from those of
``re`` in two ways that are kept here: ``\s`` does not match U+001C to U+001F, and letters include combining marks.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import string
import sys
import unicodedata
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from corpusforge.bundled import cache_folder

VERSION = "3.10.4"
"""The release of NLTK whose decisions these are."""

FILES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")
_ENGLISH = "tokenizers/punkt_tab/english"

# Contexts in which training saw a word: first of a sentence, inside one, or unknown; in upper or lower case.
_BEGAN_LOWER, _INSIDE_UPPER = 1 << 4, 1 << 2
_UPPER, _LOWER = 1 << 1 | 1 << 2 | 1 << 3, 1 << 4 | 1 << 5 | 1 << 6

_SPACE, _NO_SPACE = r"[^\S\x1c-\x1f]", r"[\S\x1c-\x1f]"
_NO_WORD = r"(?:[)\";}\]*:@'({\[\u2018\u2019\u201c\u201d\xab\xbb?!])"
_MULTIPLE = rf"(?:-{{2,}}|\.{{2,}}|(?:\.{_SPACE}){{2,}}\.)"
_WORDS = re.compile(
    rf"({_MULTIPLE}|(?=[^(\"`{{\[:;&#*@)}}\]\-,]){_NO_SPACE}+?"
    rf"(?={_SPACE}|$|{_NO_WORD}|{_MULTIPLE}|,(?=$|{_SPACE}|{_NO_WORD}|{_MULTIPLE}))|{_NO_SPACE})"
)
_END = re.compile(rf"[.?!](?=(?P<after>{_NO_WORD}|{_SPACE}+(?P<following>{_NO_SPACE}+)))")
_CLOSING = re.compile(rf"[\"')\]}}\u2018\u2019\u201c\u201d\xab\xbb]+?(?:{_SPACE}+|(?=--)|$)", re.MULTILINE)
_ELLIPSIS = re.compile(r"\.\.+$")
_NUMBER = re.compile(r"^-?[.,]?\d[\d,.-]*\.?$")


class Parameters(NamedTuple):
    """Punkt's parameters: abbreviations, pairs of words around a dot that does not end a sentence, words that often
    begin sentences, and the contexts in which each word occurred (bits)."""

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, ...]]
    starters: frozenset[str]
    contexts: dict[str, int]


@cache
def load() -> Parameters:
    """The English parameters, from where NLTK looks for them or from the user's cache.

    Raises LookupError if they are in none of these folders, OSError or ValueError if they cannot be read.
    """
    abbreviations, collocations, contexts, starters = (_lines(text) for text in _texts())
    return Parameters(
        frozenset(abbreviations),
        frozenset(tuple(line.split("\t")) for line in collocations),
        frozenset(starters),
        {word: int(bits) for word, bits in (line.split("\t") for line in contexts)},
    )


def folders() -> list[Path]:
    """Folders of NLTK's data in the order of the search (``nltk/data.py``), the user's cache last."""
    named = [os.path.expanduser(name) for name in os.environ.get("NLTK_DATA", "").split(os.pathsep) if name]  # noqa: PTH111
    searched = [*map(Path, named), Path("~/nltk_data").expanduser()]
    searched += [Path(sys.prefix) / part / "nltk_data" for part in ("", "share", "lib")]
    if os.name == "nt":
        searched += [Path(os.environ.get("APPDATA", "C:\\")) / "nltk_data", *(Path(f"{d}:\\nltk_data") for d in "CDE")]
    else:
        searched += [
            Path(root) / "nltk_data" for root in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
        ]
    return [*searched, cache_folder("nltk_data")]


def _texts() -> list[str]:
    """The content of `FILES`, from the first folder that has them, else the first archive, as in NLTK."""
    for folder in folders():
        if (folder / _ENGLISH).is_dir():
            return [(folder / _ENGLISH / name).read_text("utf-8") for name in FILES]
    for folder in folders():
        archive = folder / "tokenizers/punkt_tab.zip"
        if archive.is_file():
            with zipfile.ZipFile(archive) as members:
                return [members.read(f"punkt_tab/english/{name}").decode("utf-8") for name in FILES]
    raise LookupError(_ENGLISH)


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\n") for line in io.StringIO(text)]


class _Token:
    """A word of the text. ``kind``: in lower case, numbers as ``##number##``; ``ends``: ends a sentence in the first
    pass."""

    __slots__ = ("abbreviation", "ellipsis", "ends", "kind", "text")

    def __init__(self, text: str, abbreviations: frozenset[str]) -> None:
        self.text = text
        self.kind = _NUMBER.sub("##number##", text.lower())
        self.ends = self.abbreviation = self.ellipsis = False
        if text in (".", "?", "!"):
            self.ends = True
        elif _ELLIPSIS.match(text):
            self.ellipsis = True
        elif text.endswith(".") and not text.endswith(".."):
            word = text[:-1].lower()
            self.abbreviation = word in abbreviations or word.split("-")[-1] in abbreviations
            self.ends = not self.abbreviation

    @property
    def without_dot(self) -> str:
        return self.kind[:-1] if len(self.kind) > 1 and self.kind[-1] == "." else self.kind

    @property
    def as_following(self) -> str:
        return self.without_dot if self.ends else self.kind

    @property
    def is_initial(self) -> bool:
        return len(self.text) == 2 and self.text[1] == "." and _is_letter(self.text[0])


def _is_letter(character: str) -> bool:
    r"""``[^\W\d]`` of the package ``regex``: letters, marks, connectors, joiners, letters in circles and squares.

    >>> [_is_letter(c) for c in ("É", "\u0301", "_", "7", "²", "Ⓐ")]
    [True, True, True, False, False, True]
    """
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nl", "Pc") or any(ord(character) in codes for codes in _OTHER_LETTERS)


_OTHER_LETTERS = (
    range(0x200C, 0x200E), range(0x24B6, 0x24EA), range(0x1F130, 0x1F14A), range(0x1F150, 0x1F16A),
    range(0x1F170, 0x1F18A),
)  # fmt: skip
"""Joiners (Join_Control) and letters in circles and squares (Other_Alphabetic), Unicode's PropList.txt."""


def spans(text: str, parameters: Parameters) -> Iterator[tuple[int, int]]:
    """Start and stop of each sentence in ``text``, in characters, as `PunktTokenizer.span_tokenize` yields them."""
    moved = 0
    slices = [*_slices(text, parameters)]
    for (start, stop), following in zip(slices, [*slices[1:], None], strict=True):
        start += moved
        closing = _CLOSING.match(text, following[0], max(following)) if following else None
        if following and closing:
            yield start, following[0] + len(closing[0].rstrip())
            moved = closing.end() - following[0]
        else:
            moved = 0
            if text[start:stop]:
                yield start, stop


def _slices(text: str, parameters: Parameters) -> Iterator[tuple[int, int]]:
    """Sentences, without the closing quotes and brackets after their end marks."""
    last = 0
    for match, context in _candidates(text):
        if _holds_end(context, parameters):
            yield last, match.end()
            last = match.start("following") if match["following"] else match.end()
    yield last, len(text.rstrip())


def _candidates(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """End marks that something follows, the last of each run; each with its word and the next word."""
    begin, previous = 0, None
    stop = 0
    for match in _END.finditer(text):
        space = max(text.rfind(c, stop, match.start()) for c in string.whitespace)
        word = space + 1 if space > stop else begin
        if previous and stop <= word:
            yield previous, text[begin:stop] + previous[0] + previous["after"]
        begin, stop, previous = word, match.start(), match
    if previous:
        yield previous, text[begin:stop] + previous[0] + previous["after"]


def _holds_end(context: str, parameters: Parameters) -> bool:
    """Whether any token but the last ends a sentence."""
    lines = (line for line in context.split("\n") if line.strip())
    tokens = [_Token(word, parameters.abbreviations) for line in lines for word in _WORDS.findall(line)]
    return any(_ends(token, following, parameters) for token, following in itertools.pairwise(tokens))


def _ends(token: _Token, following: _Token, parameters: Parameters) -> bool:
    """Whether a token ends a sentence, by what follows it: the second pass (`_second_pass_annotation`)."""
    if not token.text.endswith("."):
        return token.ends
    word, then = token.without_dot, following.as_following
    if (word, then) in parameters.collocations:
        return False
    starts = _starts(following, parameters)
    if (token.abbreviation or token.ellipsis) and not token.is_initial:
        if starts:
            return True
        if following.text[0].isupper() and then in parameters.starters:
            return True
    if token.is_initial or word == "##number##":
        if starts is False:
            return False
        if starts is None and token.is_initial and following.text[0].isupper():
            return token.ends and bool(parameters.contexts.get(then, 0) & _LOWER)
    return token.ends


def _starts(token: _Token, parameters: Parameters) -> bool | None:
    """Whether a word starts a sentence, by the contexts in which it occurred; None if unknown."""
    if token.text in (";", ":", ",", ".", "!", "?"):
        return False
    context = parameters.contexts.get(token.as_following, 0)
    if token.text[0].isupper() and context & _LOWER and not context & _INSIDE_UPPER:
        return True
    if token.text[0].islower() and (context & _UPPER or not context & _BEGAN_LOWER):
        return False
    return None
