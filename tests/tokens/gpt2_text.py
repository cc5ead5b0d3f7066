"""Text that breaks the GPT-2 split: apostrophes, white space of all widths, the edges of rows."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.tokens import hard_text

TRAPS = [
    *"abst'!1² \n\t\u3000\xa0\u2028é東",
    "'ll",
    "'re",
    "'ve",
    "'s ",
    "'S",
    " '",
    "  ",
    "\r\n",
    "<s>",
    "<mask>",
    "</s>",
]

traps = st.lists(st.sampled_from(TRAPS), max_size=25).map("".join)
columns = st.lists(hard_text.texts | traps, max_size=6)
