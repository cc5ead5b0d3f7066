"""Whether RE2 takes an expression: asked before a run, as the answer depends on how much memory it compiles to.

Comes in: an expression. Goes out: what RE2 says against it, or None. RE2 refuses what compiles to more than its budget
(8 MiB, a part of it for each direction it may read in: ``max_mem`` in re2/re2.h), and each way to use an expression in
Arrow has a budget of its own. So the one decision: every expression is tried in all ways that `corpusforge.clean` uses.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def refusal_of(expression: str) -> str | None:
    """Why RE2 does not take an expression; None where it does.

    >>> refusal_of("a+"), refusal_of("a" * 2_000_000)
    (None, 'Invalid regular expression: pattern too large - compile failed')
    """
    try:
        pc.match_substring_regex(pa.array([""]), expression)
        pc.find_substring_regex(pa.array([""]), expression)
    except pa.ArrowInvalid as error:
        return " ".join(str(error).split())[:200]
    return None
