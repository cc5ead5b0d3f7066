"""WordPiece learned by likelihood, as plainly as possible: everything is counted again before every merge."""

from __future__ import annotations

import itertools
from collections import Counter


def learn(words: dict[str, int], first: list[str], room: int, min_pair: int) -> list[str]:
    """Pieces from ``first`` on: the pair of the highest count(ab) / (count(a) count(b)) is merged repeatedly."""
    pieces = list(first)
    spelled = [([w[0], *(f"##{c}" for c in w[1:])], n) for w, n in words.items()]
    spelled = [(parts, n) for parts, n in spelled if set(parts) <= set(pieces)]
    least = None
    while len(pieces) < room:
        single: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for parts, n in spelled:
            for part in parts:
                single[part] += n
            for pair in itertools.pairwise(parts):
                pairs[pair] += n
        least = least or min_pair or max(pairs.values(), default=1)
        rated = [
            (-n / (float(single[a]) * float(single[b])), -n, pieces.index(a), pieces.index(b))
            for (a, b), n in pairs.items()
            if n >= least
        ]
        if not rated and (min_pair or least == 1):
            break
        if not rated:
            least //= 2
            continue
        *_, left, right = min(rated)
        made = pieces[left] + pieces[right].removeprefix("##")
        if made not in pieces:
            pieces.append(made)
        spelled = [(_joined(parts, pieces[left], pieces[right], made), n) for parts, n in spelled]
    return pieces


def _joined(parts: list[str], left: str, right: str, made: str) -> list[str]:
    out, at = [], 0
    while at < len(parts):
        if parts[at : at + 2] == [left, right]:
            out.append(made)
            at += 2
        else:
            out.append(parts[at])
            at += 1
    return out
