"""URLs as tensorflow-datasets 4.9.10 normalizes them, one at a time (facts of its ``text/c4_utils.py``)."""

from __future__ import annotations

import hashlib
import re


def normalised(url: str) -> str:
    """Without every scheme (and a ``www.`` after it), tracking parameters, and slashes at the end."""
    without = re.sub("http://www[.]|https://www[.]|http://|https://", "", url)
    for sign in re.finditer(r"\?", without):
        rest = without[sign.end() :]
        if rest.startswith(("utm_", "ref", "feed")):
            _, newline, rest = without[sign.start() :].partition("\n")
            without = without[: sign.start()] + ("\n" + normalised_tail(rest) if newline else "")
            break
    while without.endswith("/"):
        without = without[:-1]
    return without


def normalised_tail(text: str) -> str:
    """The lines after the first without parameters (no real URL has any)."""
    return re.sub(r"\?(utm_|ref|feed).*", "", text)


def number(url: str) -> int:
    """The MD5 of a normalized URL as a number."""
    return int(hashlib.md5(url.encode()).hexdigest(), 16)


def domain_of(url: str) -> str:
    """The host of a URL, lower case, without user, port and trailing dot."""
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*:)?//", url)
    rest = url[scheme.end() :] if scheme else url
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2]
    host = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    return host.lower().rstrip(".")


def covered(url: str, names: set[str]) -> str | None:
    """The longest of the names that is the host of the URL or a domain above it."""
    labels = domain_of(url).split(".")
    for i in range(len(labels)):
        if ".".join(labels[i:]) in names:
            return ".".join(labels[i:])
    return None
