"""URLs: C4's normalization and draws, and the step that drops pages by allowed and blocked domains.

The normalization is that of tensorflow-datasets (``text/c4_utils.py``, ``normalize_url``), not RFC 3986: upper case,
ports and fragments stay, so that the same pages are duplicates, and the same pages are held out, as in C4. A page
without a URL (null) has no normalized URL either and duplicates nothing.

A page without a URL is on no list: a list of allowed domains drops it, and a list of blocked ones keeps it. A domain
covers its sub-domains. Each suffix of a host that begins after a dot is looked up by its hash in a sorted column, and
matches are compared as strings: millions of names take 30 bytes each, and hash collisions do no harm.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors
from corpusforge.arrays import I64, U8, U64, Bools, offsets_of, ranges
from corpusforge.clean.step import FieldsOnly, Verdict
from corpusforge.text import escape, refusal_of, slices, text_bytes

_SCHEME = r"https?://(www\.)?"
"""Deleted everywhere, also inside an archive's path; ``www.`` alone is kept (tensorflow-datasets 4.9.10,
``text/c4_utils.py``, ``normalize_url``)."""

_TRACKING = r"\?(utm_|ref|feed).*"
"""Deleted up to the end of the line: parameters of campaigns, referrers and feeds (the same function). ``?refresh=1``
is deleted too; ``&utm_`` after another parameter stays."""


def normalize_urls(urls: pa.Array) -> pa.StringArray:
    """URLs without scheme, ``www.``, tracking parameters and trailing slashes; null stays null.

    >>> normalize_urls(pa.array(["https://www.a.org/b/?utm_source=x", "http://a.org/?q=1", None])).to_pylist()
    ['a.org/b', 'a.org/?q=1', None]
    """
    bare = pc.replace_substring_regex(urls, _SCHEME, "")
    return pc.utf8_rtrim(pc.replace_substring_regex(bare, _TRACKING, ""), "/")


def md5_words(normalized: pa.Array) -> tuple[U64, U64]:
    """MD5 of each string as a number of 128 bits: its high and its low word. Null counts as the empty string.

    A Python loop with a reason: one C call a URL (0.5 us), and C4 draws by this number.
    """
    digest = hashlib.md5
    data = b"".join(digest((url or "").encode(), usedforsecurity=False).digest() for url in normalized.to_pylist())
    words = np.frombuffer(data, ">u8").reshape(-1, 2).astype(np.uint64)
    return words[:, 0], words[:, 1]


def md5_remainders(normalized: pa.Array, divisor: int) -> U64:
    """MD5 of each string modulo ``divisor`` (at most 2^31). C4's validation part: 0 of 1000.

    >>> md5_remainders(pa.array(["a.org"]), 1000).tolist() == [int(hashlib.md5(b"a.org").hexdigest(), 16) % 1000]
    True
    """
    high, low = md5_words(normalized)
    by = np.uint64(divisor)
    return ((high % by) * np.uint64((1 << 64) % divisor) + low % by) % by


def is_drawn(normalized: pa.Array, share: float) -> Bools:
    """Which URLs fall into the first ``share`` by their MD5: ``md5 % b < a`` where ``share`` is ``a / b``.

    As in tensorflow-datasets (``get_badwords_filter_fn``), where a / b is the exact value of the float, b a power of 2.

    >>> is_drawn(pa.array(["a.org", "b.org"]), 1.0).tolist(), is_drawn(pa.array(["a.org"]), 0.0).tolist()
    ([True, True], [False])
    """
    above, below = float.as_integer_ratio(share)
    _, low = md5_words(normalized)
    if below > 1 << 63:  # shares below 2^-10 that are not short binary fractions have finer steps than the low word
        low, above, below = low >> np.uint64(1), int(share * (1 << 63)), 1 << 63
    return np.asarray((low & np.uint64(below - 1)) < np.uint64(above))


REASONS = ("kept", "page:url-not-allowed", "page:url-blocked")
NOT_ALLOWED, BLOCKED = 1, 2

_GROUP = 20_000
"""Characters of an expression: RE2 refuses those above 8 MiB compiled (``max_mem`` in re2/re2.h)."""

_MOST_SUBSTRINGS = 10_000
"""Each is searched for in every URL; longer lists should be lists of domains."""

_LONGEST_SUBSTRING = 2000
"""Characters of a substring: no URL is longer in practice (the Sitemaps protocol 0.9 has 2,048)."""


@dataclass(frozen=True)
class UrlLists(FieldsOnly):
    """The lists of the section [urls]: words, or ``@path`` of a file with one entry per line. Empty: no such rule.

    ``allow``, ``block``: domains with their sub-domains; ``block_substrings``: parts of URLs, in any case of letters.
    """

    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    block_substrings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What rejects call this step."""
        return "urls"

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.allow or self.block or self.block_substrings)

    def check(self) -> None:
        """Read the lists. Raises `errors.ResourceMissing`, `errors.RecipeInvalid`."""
        if self.allow and not len(self._allowed):
            what = "the list of allowed domains is empty: no page would stay"
            raise errors.RecipeInvalid("urls.allow", what, "name domains, or leave it out")
        _ = self._blocked
        for group, expression in self._expressions:
            if wrong := refusal_of(expression):
                what = f"{len(group)} entries from '{group[0][:40]}' on: {wrong}"
                raise errors.RecipeInvalid("urls.block_substrings", what, "shorten or leave out entries")

    def resources(self) -> dict[str, Any]:
        """Digests of the lists' entries, whether in the recipe or in files."""
        lists = {"allow": self.allow, "block": self.block, "block_substrings": self.block_substrings}
        return {key: digest_of_entries(entries, f"urls.{key}") for key, entries in lists.items() if entries}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Decide about a batch of DOCUMENTS by its URLs."""
        urls = documents["url"]
        codes = np.zeros(documents.num_rows, np.int8)
        details: dict[int, str] = {}
        if self.block:
            self._drop(codes, details, self._blocked.covering(urls), BLOCKED)
        if self.block_substrings:
            for group, expression in self._expressions:
                self._drop(codes, details, _first_substring(urls, group, expression), BLOCKED)
        if self.allow:
            allowed = np.asarray(self._allowed.covering(urls).is_valid(), bool)
            codes[~allowed] = NOT_ALLOWED
            # A Python loop over dropped pages only.
            for row in np.flatnonzero(~allowed).tolist():
                details[row] = _shown(urls[row].as_py())
        return Verdict(REASONS, codes, documents["text"], details)

    def _drop(self, codes: Any, details: dict[int, str], entries: pa.StringArray, code: int) -> None:
        for row in np.flatnonzero(np.asarray(entries.is_valid(), bool) & (codes == 0)).tolist():
            codes[row], details[row] = code, entries[row].as_py()

    @cached_property
    def _allowed(self) -> Domains:
        return load_domains(self.allow, "urls.allow")

    @cached_property
    def _blocked(self) -> Domains:
        return load_domains(self.block, "urls.block")

    @cached_property
    def _expressions(self) -> list[tuple[list[str], str]]:
        entries = pc.unique(read_entries(self.block_substrings, "urls.block_substrings")).to_pylist()
        if len(entries) > _MOST_SUBSTRINGS:
            what = f"{len(entries)} substrings, the limit is {_MOST_SUBSTRINGS}"
            raise errors.RecipeInvalid("urls.block_substrings", what, "put names of domains into urls.block")
        if long := next((entry for entry in entries if len(entry) > _LONGEST_SUBSTRING), None):
            what = f"'{long[:40]}...' has {len(long)} characters, the limit is {_LONGEST_SUBSTRING}"
            raise errors.RecipeInvalid("urls.block_substrings", what, "give parts of URLs")
        return [(group, f"(?i){'|'.join(escape(entry) for entry in group)}") for group in _groups(entries)]


def _groups(entries: list[str]) -> list[list[str]]:
    """Consecutive entries, in groups of about `_GROUP` characters."""
    ends = np.cumsum([len(entry) for entry in entries])
    runs = ends // _GROUP
    bounds = [0, *(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(entries)]
    return [entries[a:b] for a, b in itertools.pairwise(bounds) if b > a]


def _first_substring(urls: pa.Array, group: Sequence[str], expression: str) -> pa.StringArray:
    """The first substring of the group in each URL, null if there is none."""
    hits = np.flatnonzero(np.asarray(pc.fill_null(pc.match_substring_regex(urls, expression), False), bool))
    first: list[str | None] = [None] * len(urls)
    for row in hits.tolist():  # a Python loop over dropped pages only
        url = urls[row].as_py().casefold()
        first[row] = next((entry for entry in group if entry.casefold() in url), group[0])
    return pa.array(first, pa.string())


def _shown(url: str | None) -> str:
    return "no URL" if not url else url[:200]


def digest_of_entries(entries: Sequence[str], key: str) -> str:
    """xxh3-128 of a list's distinct entries, sorted."""
    lines = sorted(set(read_entries(entries, key).to_pylist()))
    return xxhash.xxh3_128_hexdigest("\n".join(lines).encode())


_HOST = r"^(?:(?:[a-zA-Z][a-zA-Z0-9+.\-]*:)?//)?(?:[^/?#\\]*@)?(?P<host>\[[^\]/?#\\]*\]|[^/?#\\:]*)"
"""Without scheme, user and port; the host of a URL without a scheme is the part before the first slash."""

_LONGEST = 253
"""Most characters of a name (RFC 1035, 2.3.4: 255 octets, two for framing); longer suffixes are not looked up."""

_RUN = 1 << 16
"""Names hashed at once."""

_NO_NAME = r"[\x00-\x20/?#\\@:*]|\.\.|^\.*$"
"""What no domain name holds."""


class Domains:
    """A set of domain names."""

    def __init__(self, names: pa.StringArray) -> None:
        hashes = _hash_each(names)
        order = np.argsort(hashes, kind="stable")
        self._names, self._hashes = names.take(pa.array(order)), hashes[order]

    def __len__(self) -> int:
        return len(self._hashes)

    def covering(self, urls: pa.Array) -> pa.StringArray:
        """The longest name of the set that is each URL's host or a domain above it; null if there is none.

        >>> names = Domains(pa.array(["a.org", "b.a.org"]))
        >>> names.covering(pa.array(["http://c.b.a.org/x", "A.ORG:80", "http://aa.org", None])).to_pylist()
        ['b.a.org', 'a.org', None, None]
        """
        rows, suffixes = _suffixes(hosts_of(urls))
        if not len(self) or not len(rows):
            return pa.nulls(len(urls), pa.string())
        at = np.minimum(np.searchsorted(self._hashes, hashes := _hash_each(suffixes)), len(self) - 1)
        likely = np.flatnonzero(self._hashes[at] == hashes)
        same = pc.equal(self._names.take(pa.array(at[likely])), suffixes.take(pa.array(likely)))
        matches = likely[np.asarray(same, bool)]
        # Suffixes of a host come longest first; of equal rows the first is kept.
        first = np.unique(rows[matches], return_index=True)[1]
        place = np.full(len(urls), -1)
        place[rows[matches][first]] = at[matches[first]]
        return self._names.take(pa.array(place, mask=place < 0))


def hosts_of(urls: pa.Array) -> pa.StringArray:
    """Hosts of URLs in lower case, without a final dot, in the letters of the DNS; "" if there is none.

    >>> hosts_of(pa.array(["https://me@WWW.Müller.de.:8080/x", "a.org/b", None])).to_pylist()
    ['www.xn--mller-kva.de', 'a.org', '']
    """
    hosts = pc.struct_field(pc.extract_regex(urls, _HOST), "host")
    return _in_dns_letters(pc.utf8_rtrim(pc.utf8_lower(pc.fill_null(hosts, "")), "."))


def _in_dns_letters(names: pa.StringArray) -> pa.StringArray:
    """Names beyond ASCII as the DNS writes them (IDNA 2003, RFC 3490)."""
    foreign = np.flatnonzero(~np.asarray(pc.string_is_ascii(names), bool))
    if not len(foreign):
        return names
    values = names.to_pylist()
    for i in foreign.tolist():  # a Python loop over the few hosts beyond ASCII
        try:
            values[i] = values[i].encode("idna").decode()
        except UnicodeError:
            continue  # not a valid host name
    return pa.array(values, pa.string())


def _suffixes(hosts: pa.StringArray) -> tuple[I64, pa.StringArray]:
    """Every suffix of each host that begins at its start or after a dot, longest first: (row of the host, suffix)."""
    data, offsets = text_bytes(hosts)
    dots = np.flatnonzero(data[offsets[0] : offsets[-1]] == ord(".")) + offsets[0]
    starts = np.sort(np.concatenate([offsets[:-1], dots + 1]))
    rows = np.searchsorted(offsets[1:], starts, "right")
    inside = rows < len(hosts)  # empty hosts at the end have no bytes
    starts, rows = starts[inside], rows[inside]
    stops = offsets[rows + 1]
    kept = (stops > starts) & (stops - starts <= _LONGEST)
    starts, stops, rows = starts[kept], stops[kept], rows[kept]
    return rows, _overlapping(data, starts, stops)


def _overlapping(data: U8, starts: I64, stops: I64) -> pa.StringArray:
    """``data[starts[i]:stops[i]]`` as a column, for slices that overlap."""
    lengths = stops - starts
    return slices(data[ranges(starts, lengths)], offsets_of(lengths))


def _hash_each(names: pa.StringArray) -> U64:
    # A Python loop with a reason: one C call a name (0.3 us), three names a URL, which stands for kilobytes of text.
    # In runs, so that a list of millions does not become as many Python integers.
    data, offsets = text_bytes(names)
    view, digest = memoryview(data.tobytes()), xxhash.xxh3_64_intdigest
    hashes = np.empty(len(names), np.uint64)
    for first in range(0, len(names), _RUN):
        pairs = itertools.pairwise(offsets[first : first + _RUN + 1].tolist())
        stop = min(first + _RUN, len(names))
        hashes[first:stop] = np.fromiter((digest(view[a:b]) for a, b in pairs), np.uint64, stop - first)
    return hashes


def read_entries(entries: Sequence[str], key: str) -> pa.StringArray:
    """The members of a list in a recipe: its words, and the lines of the files it names by ``@path``.

    Blank lines and lines that begin with # are skipped. ``key``: the setting's name, for errors. Raises
    `errors.ResourceMissing` for a file that is not there, `errors.RecipeInvalid` for one that is not text.
    """
    parts = [pa.array([entry for entry in entries if not entry.startswith("@")], pa.string())]
    parts += [_read_lines(entry[1:], key) for entry in entries if entry.startswith("@")]
    lines = pc.utf8_trim_whitespace(pa.concat_arrays(parts))
    return lines.filter(pc.invert(pc.or_(pc.equal(lines, ""), pc.starts_with(lines, "#"))))


def _read_lines(path: str, key: str) -> pa.StringArray:
    try:
        if "://" in path:
            import fsspec  # 50 ms, for URLs only

            with fsspec.open(path, "rb") as file:
                data = file.read()
        else:
            data = Path(path).read_bytes()
        return pa.array(data.decode("utf-8-sig").split("\n"), pa.string())
    except UnicodeDecodeError as error:
        raise errors.RecipeInvalid(
            path, f"is not UTF-8 ({error.reason})", "write one entry per line, in UTF-8"
        ) from None
    except OSError as error:
        what = f"the list of {key} cannot be read ({error.strerror or error})"
        raise errors.ResourceMissing(path, what, "check the path after the @") from None


def load_domains(entries: Sequence[str], key: str) -> Domains:
    """The domains of a list in a recipe. ``*.a.org``, ``.a.org`` and ``https://a.org/`` all mean ``a.org``.

    Raises what `read_entries` raises, and `errors.RecipeInvalid` for an entry that is not a domain.
    """
    given = read_entries(entries, key)
    names = pc.replace_substring_regex(pc.utf8_lower(given), r"^(?:https?://)?(?:\*\.|\.)?", "")
    names = pc.replace_substring_regex(names, r"\.?/?$", "")
    wrong = pc.or_(pc.match_substring_regex(names, _NO_NAME), pc.greater(pc.binary_length(names), 4 * _LONGEST))
    if (bad := given.filter(wrong)) and len(bad):
        what = f"'{bad[0].as_py()[:80]}' is not a domain"
        raise errors.RecipeInvalid(key, what, "write names like example.org; for parts of URLs use block_substrings")
    return Domains(pc.unique(_in_dns_letters(names)))
