"""Words and characters that the built-in sentence splitter goes by: lists, and classes of bytes.

Comes in: nothing. Goes out: sorted tables of words and characters packed into integers, and masks over bytes, which
`sentence_ends` looks up for whole columns at once.
"""

from __future__ import annotations

import numpy as np

from corpusforge.arrays import I64, Bools

WORD = 8  # letters of the longest word in a list

TITLES = "mr mrs ms dr prof mt rev gen col lt sgt capt cmdr gov sen rep hon messrs maj adm vs cf viz"
"""Never end a sentence: titles before names, connectives. Most are among the abbreviations Punkt learned for English
(NLTK punkt_tab/english/abbrev_types.txt)."""
BEFORE_DIGITS = "no nos vol vols fig figs eq eqs sec secs ch chap pp pg art op"
"""Do not end a sentence before a digit: references. Before a word ("The answer is no. We ...") they do."""
ABBREVIATIONS = (
    "inc corp co cos ltd llc plc bros jr sr esq etc al ca st ph ed eds trans dept univ assn ave blvd ft approx govt spp"
    " jan feb mar apr jun jul aug sep sept oct nov dec tues thurs"
    " ala ariz ark calif colo conn fla ga ky md mich minn neb nev okla penn tenn tex va vt wis wyo"
)
"""Often followed by names, numbers and brackets, but may end a sentence: firms, names, months, states of the USA as the
Associated Press writes them."""
STARTERS = (
    "the a an this that these those he she it we you they i his her its our your their my there here what when where"
    " who why how which while in on at by for from with as if to after before during since until although though"
    " because however but and or so yet nor some many most all both each every another other such one two several few"
    " also then thus now once only even still just perhaps maybe later"
)
"""Function words of English that begin sentences and are hardly ever part of a name."""


def packed(*words: str) -> I64:
    """Words of up to eight ASCII bytes, or characters of up to three, as sorted big-endian integers."""
    return np.array(sorted(int.from_bytes(w.encode(), "big") for w in words), np.int64)


def bytes_in(*ranges: range | bytes) -> Bools:
    """A table of 256: whether a byte is in one of these."""
    table = np.zeros(256, bool)
    table[[b for r in ranges for b in r]] = True
    return table


TITLE_CODES, DIGIT_CODES = packed(*TITLES.split()), packed(*BEFORE_DIGITS.split())
SHORT_CODES, STARTER_CODES = packed(*ABBREVIATIONS.split()), packed(*STARTERS.split())
WIDE_SPACES = packed(*"\x85\xa0\u1680\u202f\u205f\u3000\u2028\u2029", *map(chr, range(0x2000, 0x200B)))
WIDE_CLOSERS = packed(*"»’”」』）】》〉］｝〕〗")
WIDE_OPENERS = packed(*"«‹¿¡“‘’”„‚「『（【《〈［｛〔〖")
DASHES = packed(*"-*–—•·")
CJK_MARKS, WIDE_MARKS = packed(*"。！？｡"), packed(*"。！？｡…")
SPACE = bytes_in(range(0x09, 0x0E), range(0x1C, 0x21))
CLOSER = bytes_in(b"\"')]}")
OPENER = bytes_in(b"\"'([{<")
MARK = bytes_in(b".!?")
DIGIT = bytes_in(range(0x30, 0x3A))
LETTER = bytes_in(range(0x41, 0x5B), range(0x61, 0x7B), range(0x80, 0x100))
IN_REFERENCE = bytes_in(range(0x30, 0x3A), range(0x41, 0x5B), range(0x61, 0x7B), b" ")
IDEOGRAPH = bytes_in(range(0xE3, 0xEA), b"\xef")
START = bytes_in(range(0x41, 0x5B), range(0x30, 0x3A), range(0xC2, 0xF5), b"$#@")
BEFORE_INITIAL = bytes_in(range(0x21), b'.([{"-/&')
# Letters of two bytes (U+0080 to U+07FF) in lower case start no sentence, as a to z do not.
LOWER = np.array([chr(c).islower() for c in range(0x800)])
