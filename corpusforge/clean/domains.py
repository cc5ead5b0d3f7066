"""Sets of domains, and the hosts of URLs looked up in them: a name covers its sub-domains.

Comes in: names, from a recipe or a file with one a line; later, columns of URLs. Goes out: for each URL the name that
covers it, or null. The one decision: a look-up is by the hash of every suffix of a host that begins behind a dot, in a
sorted column, and what is found is compared letter by letter. So millions of names take 30 bytes each and no
expression is built of them, and no two names are ever taken for one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from corpusforge import errors
from corpusforge.arrays import I64, U8, U64
from corpusforge.text import byte_slices, text_bytes

_HOST = r"^(?:(?:[a-zA-Z][a-zA-Z0-9+.\-]*:)?//)?(?:[^/?#\\]*@)?(?P<host>\[[^\]/?#\\]*\]|[^/?#\\:]*)"
"""Scheme, user and port go; the host of a URL without a scheme is what stands before the first slash."""

_LONGEST = 253
"""Characters of a name at most (RFC 1035, 2.3.4: 255 octets with two of framing): longer suffixes are not looked up."""

_RUN = 1 << 16
"""Names hashed at once."""

_NO_NAME = r"[\x00-\x20/?#\\@:*]|\.\.|^\.*$"
"""What no domain holds. An address in brackets is none either."""


class Domains:
    """A set of domain names."""

    def __init__(self, names: pa.StringArray) -> None:
        hashes = _hash_each(names)
        order = np.argsort(hashes, kind="stable")
        self._names, self._hashes = names.take(pa.array(order)), hashes[order]

    def __len__(self) -> int:
        return len(self._hashes)

    def covering(self, urls: pa.Array) -> pa.StringArray:
        """The longest name of the set that is each URL's host or a domain above it; null where there is none.

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
        found = likely[np.asarray(same, bool)]
        # Suffixes of a host come longest first; of equal rows the first is kept.
        first = np.unique(rows[found], return_index=True)[1]
        place = np.full(len(urls), -1)
        place[rows[found][first]] = at[found[first]]
        return self._names.take(pa.array(place, mask=place < 0))


def hosts_of(urls: pa.Array) -> pa.StringArray:
    """Hosts of URLs in lower case, without the dot at the end, in the letters of the DNS; "" where there is none.

    >>> hosts_of(pa.array(["https://me@WWW.Müller.de.:8080/x", "a.org/b", None])).to_pylist()
    ['www.xn--mller-kva.de', 'a.org', '']
    """
    found = pc.struct_field(pc.extract_regex(urls, _HOST), "host")
    return _in_dns_letters(pc.utf8_rtrim(pc.utf8_lower(pc.fill_null(found, "")), "."))


def _in_dns_letters(names: pa.StringArray) -> pa.StringArray:
    """Names beyond ASCII as the DNS writes them (IDNA 2003, RFC 3490)."""
    foreign = np.flatnonzero(~np.asarray(pc.string_is_ascii(names), bool))
    if not len(foreign):
        return names
    values = names.to_pylist()
    for i in foreign.tolist():  # a loop over the few hosts that are written in other letters
        try:
            values[i] = values[i].encode("idna").decode()
        except UnicodeError:
            continue  # no name a server could have
    return pa.array(values, pa.string())


def _suffixes(hosts: pa.StringArray) -> tuple[I64, pa.StringArray]:
    """Every suffix of each host that begins at its start or behind a dot, longest first: (row of the host, suffix)."""
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
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    offsets = np.concatenate([[0], ends])
    return byte_slices(data[places], offsets[:-1], offsets[1:])


def _hash_each(names: pa.StringArray) -> U64:
    # A loop with a reason: one C call a name (0.3 us), and three names a URL against kilobytes of text. In runs, so
    # that a list of millions does not become as many Python integers.
    data, offsets = text_bytes(names)
    view, digest = memoryview(data.tobytes()), xxhash.xxh3_64_intdigest
    hashes = np.empty(len(names), np.uint64)
    for first in range(0, len(names), _RUN):
        pairs = itertools.pairwise(offsets[first : first + _RUN + 1].tolist())
        behind = min(first + _RUN, len(names))
        hashes[first:behind] = np.fromiter((digest(view[a:b]) for a, b in pairs), np.uint64, behind - first)
    return hashes


def read_entries(entries: Sequence[str], key: str) -> pa.StringArray:
    """The members of a list in a recipe: its words, and the lines of the files it names by ``@path``.

    Blank lines and lines that begin with # are passed over. ``key``: of the setting, for errors. Raises
    `errors.ResourceMissing` for a file that is not there, `errors.RecipeInvalid` for one that is no text.
    """
    parts = [pa.array([entry for entry in entries if not entry.startswith("@")], pa.string())]
    parts += [_read_lines(entry[1:], key) for entry in entries if entry.startswith("@")]
    found = pc.utf8_trim_whitespace(pa.concat_arrays(parts))
    return found.filter(pc.invert(pc.or_(pc.equal(found, ""), pc.starts_with(found, "#"))))


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
        raise errors.RecipeInvalid(path, f"is not UTF-8 ({error.reason})", "write one entry a line, in UTF-8") from None
    except OSError as error:
        what = f"the list of {key} cannot be read ({error.strerror or error})"
        raise errors.ResourceMissing(path, what, "check the path behind the @") from None


def load_domains(entries: Sequence[str], key: str) -> Domains:
    """The domains of a list in a recipe. ``*.a.org``, ``.a.org`` and ``https://a.org/`` all mean ``a.org``.

    Raises what `read_entries` raises, and `errors.RecipeInvalid` for an entry that is no domain.
    """
    given = read_entries(entries, key)
    names = pc.replace_substring_regex(pc.utf8_lower(given), r"^(?:https?://)?(?:\*\.|\.)?", "")
    names = pc.replace_substring_regex(names, r"\.?/?$", "")
    wrong = pc.or_(pc.match_substring_regex(names, _NO_NAME), pc.greater(pc.binary_length(names), 4 * _LONGEST))
    if (bad := given.filter(wrong)) and len(bad):
        what = f"'{bad[0].as_py()[:80]}' is no domain"
        raise errors.RecipeInvalid(key, what, "write names like example.org; for parts of URLs use block_substrings")
    return Domains(pc.unique(_in_dns_letters(names)))
