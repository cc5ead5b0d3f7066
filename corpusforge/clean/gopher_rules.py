"""What a pack of the kind "gopher" says: limits of quality and repetition, and what the paper leaves open.

The paper is Rae et al. 2021, "Scaling Language Models: Methods, Analysis & Insights from Training Gopher"
(arXiv 2112.11446), appendix A.1.1 and table A1. It does not say what a bullet is, whether case matters in stop words,
or how overlapping n-grams count; implementations differ there, so these are values of the pack as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge import errors
from corpusforge.clean.pack import Pack


@dataclass(frozen=True)
class GopherRules(Pack):
    """A pack of the kind "gopher". Numbers of 0, false and empty lists switch a rule off."""

    # Quality.
    min_words: int  # of a page
    max_words: int
    min_mean_word_characters: float
    max_mean_word_characters: float
    uncounted_characters: tuple[str, ...]  # words of these alone do not count, in the four rules above
    hash_marks: tuple[str, ...]  # symbols of which a page may hold max_symbols_a_word, and
    ellipses: tuple[str, ...]  # the same for these; also what a line may end in
    max_symbols_a_word: float
    bullets: tuple[str, ...]  # what a line begins with, behind white space
    max_bullet_lines: float  # share of the lines
    max_ellipsis_lines: float
    min_alphabetic_words: float  # share of the words with a letter
    stop_words: tuple[str, ...]
    stop_words_any_case: bool
    min_stop_words: int  # so many different ones
    # Repetition.
    max_duplicate_paragraphs: float  # share of the paragraphs
    max_duplicate_paragraph_characters: float  # share of the characters of the page; so are all below
    max_duplicate_lines: float  # share of the lines
    max_duplicate_line_characters: float
    max_top_2_gram: float
    max_top_3_gram: float
    max_top_4_gram: float
    duplicate_ngrams_in_turn: bool  # words of a duplicate n-gram begin no other, nor do they stand for a first one
    max_duplicate_5_grams: float
    max_duplicate_6_grams: float
    max_duplicate_7_grams: float
    max_duplicate_8_grams: float
    max_duplicate_9_grams: float
    max_duplicate_10_grams: float

    def check(self, where: str) -> None:
        """Characters are single ones."""
        odd = [entry for entry in self.uncounted_characters if len(entry) != 1]
        if odd:
            raise errors.RecipeInvalid(where, f"uncounted_characters has {odd[0][:40]!r}", "give single characters")
