"""URLs as C4 compares them: normalised by columns, and the number by which a URL is drawn.

Comes in: a column of URLs. Goes out: the same column normalised, or 128-bit numbers of it. The one decision: the rule
is tensorflow-datasets' own (``text/c4_utils.py``, ``normalize_url``), not RFC 3986: upper case, ports and fragments
stay as they are, so that the same pages are duplicates and the same pages are held out as in C4. A page without a URL
(null) has no normalised URL either: it is a copy of nothing.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.arrays import U64

_SCHEME = r"https?://(www\.)?"
"""Deleted wherever it stands, also inside an archive's path; ``www.`` alone is kept (tensorflow-datasets 4.9.10,
``text/c4_utils.py``, ``normalize_url``)."""

_TRACKING = r"\?(utm_|ref|feed).*"
"""Deleted up to the end of the line: marks of campaigns, referrers and feeds (the same function). ``?refresh=1`` goes
as well, ``&utm_`` behind another parameter stays."""


def normalise_urls(urls: pa.Array) -> pa.StringArray:
    """URLs without scheme, ``www.``, tracking parameters and trailing slashes; null stays null.

    >>> normalise_urls(pa.array(["https://www.a.org/b/?utm_source=x", "http://a.org/?q=1", None])).to_pylist()
    ['a.org/b', 'a.org/?q=1', None]
    """
    bare = pc.replace_substring_regex(urls, _SCHEME, "")
    return pc.utf8_rtrim(pc.replace_substring_regex(bare, _TRACKING, ""), "/")


def md5_words(normalised: pa.Array) -> tuple[U64, U64]:
    """MD5 of each string as a number of 128 bits: its high and its low word. Null counts as the empty string.

    A loop with a reason: one C call a URL (0.5 us), and C4 draws by this very number.
    """
    digest = hashlib.md5
    data = b"".join(digest((url or "").encode(), usedforsecurity=False).digest() for url in normalised.to_pylist())
    words = np.frombuffer(data, ">u8").reshape(-1, 2).astype(np.uint64)
    return words[:, 0], words[:, 1]


def md5_remainders(normalised: pa.Array, divisor: int) -> U64:
    """MD5 of each string modulo ``divisor`` (at most 2^31). C4's validation part: 0 of 1000.

    >>> md5_remainders(pa.array(["a.org"]), 1000).tolist() == [int(hashlib.md5(b"a.org").hexdigest(), 16) % 1000]
    True
    """
    high, low = md5_words(normalised)
    by = np.uint64(divisor)
    return ((high % by) * np.uint64((1 << 64) % divisor) + low % by) % by


def is_drawn(normalised: pa.Array, share: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which URLs fall into the first ``share`` by their MD5: ``md5 % b < a`` where ``share`` is ``a / b``.

    As in tensorflow-datasets (``get_badwords_filter_fn``), where a / b is the exact value of the float, b a power of 2.

    >>> is_drawn(pa.array(["a.org", "b.org"]), 1.0).tolist(), is_drawn(pa.array(["a.org"]), 0.0).tolist()
    ([True, True], [False])
    """
    above, below = float.as_integer_ratio(share)
    _, low = md5_words(normalised)
    if below > 1 << 63:  # shares below 2^-10 that are no short binary fraction have finer steps than the low word
        low, above, below = low >> np.uint64(1), int(share * (1 << 63)), 1 << 63
    return np.asarray((low & np.uint64(below - 1)) < np.uint64(above))
