"""Hypothesis strategies for texts with everything that lines and sentences depend on."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import strategies as st

BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
SPACES = "\t \x1f\xa0\u1680\u2003\u202f\u205f\u3000\ufeff\u200b"
MARKS = ".!?…。！？｡\"')]}»’”」』"
LETTERS = "aBÉéİßЖж中한あ1(“𠀀😀\x00"
PARTS = [*BREAKS, *SPACES, *MARKS, *LETTERS, "\r\n", "Dr.", "e.g.", "U.S.", "No.", "I.", "3.5", "1.", "..."]
PARTS += [
    "Inc.",
    "É.",
    "[12]",
    "[n 7]",
    "[citation]",
    " The ",
    " A. ",
    "– ",
    "-",
    "*",
    "won’t.",
    "“J.",
    "Aug.",
    " . .",
]
SMALL = ["mr.", "inc.", "said.", "so!", "the", "x", " ", " ", "\n", "“", "- ", "...", "é"]
TEXTS = st.one_of(
    st.lists(st.sampled_from(SMALL), max_size=20).map("".join),
    st.lists(st.sampled_from([*PARTS, " ", " ", ". ", "word", "Word"]), max_size=40).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
)


def sliced(texts: list[str]) -> pa.StringArray:
    """The column as a slice out of the middle of a longer one."""
    return pa.array(["Before. No", *texts, "\nAfter. x"], pa.string()).slice(1, len(texts))
