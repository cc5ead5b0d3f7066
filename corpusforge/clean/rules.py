"""The rules of packs of the kind "c4": which lines stay on a page, and which pages.

Every implementation calls itself C4 and no two agree, so the code reads no constant from anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpusforge import errors
from corpusforge.clean.pack import Pack


@dataclass(frozen=True)
class Rules(Pack):
    """A pack of the kind "c4". Numbers of 0, false and empty lists switch a rule off."""

    max_page_characters: int  # a page with more is dropped unread
    min_paragraphs: int  # a page needs so many lines (cut at "\n" only) of min_paragraph_characters
    min_paragraph_characters: int
    phrases_anywhere: bool  # lorem_ipsum and curly_brace look at the whole page as it came, not at kept lines only
    max_word_characters: int  # a line with a longer white-space word is dropped
    numbered_citations: bool  # delete "[12]" and "[]"
    citations: tuple[str, ...]  # delete these as they stand
    end_marks: tuple[str, ...]  # a line must end in one
    no_end_marks: tuple[str, ...]  # and must not end in one of these
    min_words: int  # white-space words of a line
    words_with_citations: bool  # words are counted before citations are deleted
    min_characters: int  # characters of a line that are no white space, for text without spaces between words
    lorem_ipsum: tuple[str, ...]  # found in a lower-cased line: the page goes
    javascript: tuple[str, ...]  # found in a lower-cased line: the line goes
    curly_brace: tuple[str, ...]  # found in a line: the page goes
    policy: tuple[str, ...]  # found in a lower-cased line: the line goes
    badwords_in_lines: bool  # an English bad word in a line that is kept so far: the page goes, before any other step
    min_sentences: int  # of a page, counted in its kept lines
    builtin_sentences: bool  # counted by the built-in splitter, whatever the setting says
    badword_fraction: float  # of pages with a bad word, the share that goes, by hash of the URL
    badword_substring_languages: tuple[str, ...]  # bad words need no word edges in these
    badwords_removed: tuple[str, ...]  # "language:entry" left out of the lists

    @property
    def judges_lines(self) -> bool:
        """Whether any rule looks at lines; where none does, the text of a page stays as it came."""
        phrases = self.javascript or self.policy or self.badwords_in_lines
        if not self.phrases_anywhere:
            phrases = phrases or self.lorem_ipsum or self.curly_brace
        deleted = self.numbered_citations or self.citations
        form = self.end_marks or self.no_end_marks or self.min_words or self.min_characters or self.max_word_characters
        return bool(phrases or deleted or form or self.min_sentences)

    def check(self, where: str) -> None:
        """A share is a share."""
        if self.badword_fraction > 1:
            raise errors.RecipeInvalid(where, f"badword_fraction = {self.badword_fraction:g}", "it is a share, 0 to 1")
