"""Lexicons and segmenters from settings: what is read, what is refused, and that only content counts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from corpusforge import errors
from corpusforge.instances.masking import MaskSettings
from corpusforge.instances.measure import judge
from corpusforge.sections import Instances, Recipe
from corpusforge.stages.build_instances import _lexicon_digest
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.mask_lexicon import Lexicon, Segmenter, joiner_of
from corpusforge.tokens.wordpiece import arrange
from corpusforge.work.instances import settings_of
from tests.tokens.small_vocabularies import of_family

VOCAB = arrange(["a", "##b"], 64, 0, UNCASED)
WORDS = Instances(mask_unit="whole-word")


def test_what_settings_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "phrases.txt"
    path.write_text("new york\n")
    assert joiner_of(VOCAB, WORDS) is None
    assert joiner_of(VOCAB, dataclasses.replace(WORDS, mask_segmenter="jieba")) == Segmenter()
    found = joiner_of(VOCAB, dataclasses.replace(WORDS, mask_lexicon=str(path)))
    assert found == Lexicon(b"new york\n", UNCASED, str(path))
    assert settings_of(VOCAB, WORDS, 0).word_starts
    assert not settings_of(VOCAB, Instances(), 0).word_starts


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"mask_unit": "token", "mask_segmenter": "jieba"}, "words, not tokens"),
        ({"mask_lexicon": "x", "mask_segmenter": "jieba"}, "too"),
        ({"mask_lexicon": "nowhere.txt"}, "no such lexicon"),
    ],
)
def test_settings_that_cannot_be(change: dict[str, str], what: str) -> None:
    with pytest.raises(errors.CorpusForgeError, match=what):
        joiner_of(VOCAB, dataclasses.replace(WORDS, **change))


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \n\n"])
def test_an_empty_lexicon_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "phrases.txt").write_bytes(content)
    with pytest.raises(errors.InputMissing, match="holds no phrase"):
        joiner_of(VOCAB, dataclasses.replace(WORDS, mask_lexicon=str(tmp_path / "phrases.txt")))


@pytest.mark.parametrize("family", ["bpe", "unigram", "sentencepiece-bpe"])
def test_a_segmenter_needs_characters_set_apart(family: str) -> None:
    with pytest.raises(errors.RecipeInvalid, match="joins no words"):
        joiner_of(of_family(family), dataclasses.replace(WORDS, mask_segmenter="jieba"))


def test_a_stage_knows_the_lexicon_by_its_content(tmp_path: Path) -> None:
    digests = []
    for name, text in (("one", "new york\n"), ("two", "new york\n"), ("three", "old york\n")):
        (tmp_path / name).write_text(text)
        section = dataclasses.replace(WORDS, mask_lexicon=str(tmp_path / name))
        digests.append(_lexicon_digest(VOCAB, dataclasses.replace(Recipe(), instances=section)))
    assert digests[0] == digests[1] != digests[2]
    assert _lexicon_digest(VOCAB, Recipe()) == ""


def test_shares_of_spans_may_differ_more_than_those_of_tokens() -> None:
    found = {"masked": 10_000, "masked_as_mask": 8_300, "masked_as_random": 900, "masked_as_kept": 800}
    found |= {"instances": 100, "tokens": 66_000}
    settings = {"where": "train", "length": 1000, "words": 29_000}
    judge(found, mask=MaskSettings(unit="span"), **settings)  # type: ignore[arg-type]
    with pytest.raises(errors.InvariantBroken):
        judge(found, mask=MaskSettings(unit="ngram"), **settings)  # type: ignore[arg-type]
