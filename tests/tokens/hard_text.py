"""Text that breaks tokenizers: any Unicode, and a mix of the characters that normalization treats specially."""

from __future__ import annotations

from hypothesis import strategies as st

TRAPS = [
    *"aZéÉüßİſǅΩ\u212a",
    *" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u2029\u3000",
    *"\x00\x01\x7f\xad\u200b\u200d\u2060\ufeff\ufffd\ue000\U000e0001\U0010ffff\u0378",  # dropped, or not assigned
    *"!$+<=>^`|~_-'\"[]#@’“”…—。，！？「」¿·\u037e\u1fef\u2ff0",
    *"東京日本\uf900\U00020000\U0002f800\u3400ひらカナ한국어각",
    *"\u0300\u0301\u0323\u0345\u0591\u05b0\u064b\u093c\u0e31\u20dd\u0903\u0488",
    # Not Mn, but with a combining class: these are reordered and stay.
    *"\u302e\u302f\U0001d165\U0001d166\U0001d16d\U0001d172\U00016ff0\U00016ff1\U0001d15f\U0001d1bb",
    *"😀🇩🇪👩\u200d💻\u1e9b\u0323\u1100\u1161\u11a8",
    "[MASK]",
    "[CLS]",
    "[unused3]",
    "[PAD] ",
    "##a",
    "x" * 101,
    "ﬁ",
    "e\u0301",
    "\u0344",
]

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
traps = st.lists(st.sampled_from(TRAPS), max_size=30).map("".join)
latin = st.text("abc ABC.,'\n\u00e9\u2019", max_size=60)
texts = anything | traps | latin
columns = st.lists(texts, max_size=6)
