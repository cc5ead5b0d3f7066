"""Best-fit-decreasing, written plainly: one instance at a time."""

from __future__ import annotations


def best_fit(lengths: list[int], room: int) -> list[list[int]]:
    """Rows of at most ``room`` tokens: each length, the longest first, goes to the fullest row that has room for it."""
    rows: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        fitting = [row for row in rows if sum(row) + length <= room]
        if fitting:
            max(fitting, key=sum).append(length)
        else:
            rows.append([length])
    return rows
