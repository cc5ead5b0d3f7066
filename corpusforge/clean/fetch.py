"""Fetch resources that CorpusForge may not bundle: the bad-word lists (CC BY 4.0) and Punkt's English model (Apache
2.0).

They come from a local folder or from their public homes at pinned commits, and go to the user's cache folder. All files
are checked by SHA-256 before the first is moved into place. Proxies are those of the environment (HTTPS_PROXY,
HTTP_PROXY, NO_PROXY), as `urllib.request` reads them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from corpusforge import errors
from corpusforge.bundled import cache_folder

if TYPE_CHECKING:
    import zipfile

TIMEOUT_SECONDS = 30
MOST_BYTES = 64 << 20  # of one file: Punkt's archive of all languages has 4 MB, the longest list 4 kB

Opener = Callable[[str], bytes]
"""Reads a URL whole; raises OSError where it cannot."""

_LISTS_HOME = "https://raw.githubusercontent.com/LDNOOBW/List-of-Dirty-Naughty-Obscene-and-Otherwise-Bad-Words"
_ENGLISH = "25e679f03d96baa721cde20db9944649e8d0a844"  # tensorflow-datasets 4.9.10, text/c4.py, _EN_BADWORDS_URL
_OTHERS = "5faf2ba42d7b1c0977169ec3611df25a3c08eb13"  # ibid., _BADWORDS_URL

LISTS = {
    "ar": ("23dbd9c55257bf2a4965f46664dc7eac04b61ff4eb3571e41f7e964c7c3ed96b",),
    "cs": ("90706df86709bade1ca39cf9f9d9836409c674fc3bffcb7525bdd20e59b596bc",),
    "da": ("ddb46ab67e955d1a5f49c89c18497d23c3d8d6d2522f3740a5d7583f90e434c6",),
    "de": ("ebe44d7772897390e27f7bec412fdcdf0efc294e4db157f8487c4cd8d4fabd55",),
    "en": (
        "a506cbcf8a31935b122299f3bb1d32be6db3d0ad498765d28f365dfc4f4d7b8c",
        "af851ecef1d5f212caba17339b12ac39cc2fef7d78c74876f67237644fcee8bd",
    ),
    "eo": ("0374d76be1dbc77c61362d6e51305e1e4c546b7f734eb96e0bdbad7fd2a6ace1",),
    "es": ("073334261cc2e7c08339faefd2f19f9623e8240a0ac18fe2a26c368b897496ce",),
    "fa": ("85828629b90fd18a3f6f6efb1934c1294103c33d1c28c0653970adfa179169e9",),
    "fi": ("3e0b35b2533ba22fb526d882bea250ddfad907ee7548aacbe15db17e21034c62",),
    "fil": ("fb4b43691b1249fee2eca1e66795daedda8e7366d42abcde6553dce611d23d99",),
    "fr": ("79763a705e08256b393952852bb63aa903f4485e0ef02f70735f5e50efff213c",),
    "fr-CA-u-sd-caqc": ("4a0ef5d55921c91df26676b214d3ac648deef11cfbc4587159ee9aab4085b09a",),
    "hi": ("83636e9b7a5260451e09e9e471f81dad9f082d107a82da77047e57d7856ed0cc",),
    "hu": ("a6943a971496f16e9a9d59ba6fde146d229699600e9636828d8d34ed9160aff5",),
    "it": ("d413f41018d58aa79d2c4809d0161f29ffd5652c4dc34c5b7b9ade680ee5599a",),
    "ja": ("f83c4d0843ea6474c17bf171edd72b616b3af403f8613f2cde1bd841faf6f316",),
    "kab": ("df7be2ce4a0c80ee717cd7134c90645a8a0f0c0c458a61f927934dbd50eac96d",),
    "ko": ("0dd4b74ffea6e3bb35d658e6d8262b53ee99281eaa48ecb515a2065bfcc7f69d",),
    "nl": ("8298ba0cdc3ca9a1989c349b8ad0148e4504c2804f2f2fb6c2f52bfb39c5ae71",),
    "no": ("e55b46bcec1ea288256924523a997d8d99e124c9aa3e61cbbbfaeca294f745b4",),
    "pl": ("98cf824e3692255645c5a72d5913f26fd4f20930f725683b4c96bb312ca5d9b3",),
    "pt": ("05ef524b0bb7f83f87257f6ec4dabf70e16b8bb6930f769fb93deaf608ff196d",),
    "ru": ("2598adabd2b761733d72a68d8ee4fcc1d2c38f2f85b6ff489985c6ce1d93bf75",),
    "sv": ("77f3f99a89bd3b2bde6a654741bacfcb3acca3f5c804af4d8d3fea11e09ea562",),
    "th": ("835036d87a3a67738e388cd6de92e3c995c186a1427b4e830fe7b85483c257e7",),
    "tlh": ("3c19004e338c0d91d19ba419185279145848b75b2327aa0e3a752c604ad9f59d",),
    "tr": ("6c7ae03baee0f3fdc22eed169030567669005dad9a1923e0b571c4bd4f2f2ab5",),
    "zh": ("a1d9aa037c8b039ef3b40148b3364ce2ca62ce4a955b7082a16ad99f6cbd1bc0",),
}
"""SHA-256 of each list (ibid., url_checksums/c4.txt); of English also at the commit of the others."""

_PUNKT_URL = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/tokenizers/punkt_tab.zip"
PUNKT = {
    "abbrev_types.txt": "c7baa3c333ea86629a32400663db8cfcc5c6d61a37107ddeac60111b550806cd",
    "collocations.tab": "ba850bde20b6d640723a51f3e747f0f4f19c98938f1d67d2692a5595c2cc48e3",
    "ortho_context.tab": "b907db07477c8d682c83331ad38b56178e77120c4ff55bb799bf43044e75d305",
    "sent_starters.txt": "9288e8cdec3ce0026b82851a145d0b5c3cfbbe64e1ea6dfa0c41d55f2e53c858",
}
"""SHA-256 of each file's sorted lines: NLTK writes sets, whose order varies from one release to the next."""


def fetch(what: str, source: str | None = None, *, opener: Opener | None = None) -> tuple[str, int]:
    """Put a resource into the cache; returns the folder and the number of files written.

    ``source``: a local folder to take the files from. Raises `errors.InputMissing`, `errors.InputUnreadable` (wrong
    content) or `errors.ResourceMissing` (cannot be reached).
    """
    read = _badwords if what == "badwords" else _punkt
    files = list(read(source, opener or _read_url))  # all are checked before the first is written
    folder = cache_folder("badwords" if what == "badwords" else "nltk_data")
    try:
        for name, content in files:
            _put(folder / name, content)
    except OSError as error:
        mend = "make room there, or set XDG_CACHE_HOME to another folder"
        raise errors.OutputTaken(str(folder), f"cannot be written ({error.strerror})", mend) from None
    return str(folder), len(files)


def _put(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".unfinished-{os.getpid()}-{target.name}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _badwords(source: str | None, opener: Opener) -> Iterator[tuple[str, bytes]]:
    for language, known in LISTS.items():
        commit = _ENGLISH if language == "en" else _OTHERS
        where = f"{source}/{language}" if source else f"{_LISTS_HOME}/{commit}/{language}"
        content = _read_file(where) if source else _open(opener, where, "badwords")
        _check(where, hashlib.sha256(content).hexdigest(), known)
        yield language, content


def _punkt(source: str | None, opener: Opener) -> Iterator[tuple[str, bytes]]:
    inner = "tokenizers/punkt_tab/english"
    if source:
        roots = [Path(source) / inner, Path(source) / "english", Path(source)]
        root = next((r for r in roots if (r / "abbrev_types.txt").is_file()), roots[0])
        files = {name: _read_file(str(root / name)) for name in PUNKT}
    else:
        files = _unzip(_open(opener, _PUNKT_URL, "punkt"))
    for name, known in PUNKT.items():
        _check(f"{source or _PUNKT_URL}: {name}", sorted_digest(files[name]), (known,))
        yield f"{inner}/{name}", files[name]


def _unzip(content: bytes) -> dict[str, bytes]:
    import io
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: _member(archive, f"punkt_tab/english/{name}") for name in PUNKT}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, KeyError, ValueError) as error:
        raise errors.InputUnreadable(_PUNKT_URL, f"not the archive expected ({error})", _MEND.format("punkt")) from None


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as member:
        content = member.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{name} is too large")
    return content


def sorted_digest(content: bytes) -> str:
    """SHA-256 of the lines in sorted order, each with a line feed."""
    return hashlib.sha256(b"".join(line + b"\n" for line in sorted(content.splitlines()))).hexdigest()


_MEND = "take the files from a local folder with 'corpusforge rules fetch {} --from DIR'"


def _check(where: str, digest: str, known: tuple[str, ...]) -> None:
    if digest not in known:
        raise errors.InputUnreadable(
            where, f"content is not what is expected (SHA-256 {digest[:16]}...)", "take it from its pinned commit"
        )


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise errors.InputMissing(path, f"cannot be read ({error.strerror})", "check the folder given") from None


def _open(opener: Opener, url: str, what: str) -> bytes:
    import http.client
    import urllib.error

    try:
        return opener(url)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error if isinstance(error, urllib.error.HTTPError) else getattr(error, "reason", error)
        cause = " ".join(str(reason).split()) or type(error).__name__
        raise errors.ResourceMissing(url, f"cannot be fetched ({cause})", _MEND.format(what)) from None


def _read_url(url: str) -> bytes:
    import urllib.request  # 40 ms, and cleaning imports this module for the names of lists

    opener = urllib.request.build_opener()  # `urlopen` would keep the proxies of its first call
    with opener.open(url, timeout=TIMEOUT_SECONDS) as answer:
        content = bytes(answer.read(MOST_BYTES + 1))
        expected = answer.headers.get("Content-Length", "")
    if len(content) > MOST_BYTES:
        raise ValueError(f"the answer has more than {MOST_BYTES >> 20} MiB")
    # Python does not detect a truncated answer if `read` has a limit.
    if expected.isdigit() and len(content) < int(expected):
        raise ValueError(f"the connection ended at {len(content)} of {expected} bytes")
    return content
