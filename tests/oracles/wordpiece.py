"""The slow, obvious way: the `tokenizers` library, one text at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tokenizers import pre_tokenizers

from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.vocab import Vocab

_SPLIT = pre_tokenizers.BertPreTokenizer()


def words(text: str, normalization: BertSegmentation) -> list[str]:
    """Words of one text."""
    normal = normalization.normalizer().normalize_str(text)
    return [word for word, _ in _SPLIT.pre_tokenize_str(normal)]


def count(texts: Iterable[str], normalization: BertSegmentation) -> dict[str, int]:
    """Occurrences of each word, sorted by the bytes of the word."""
    found = Counter(word for text in texts for word in words(text, normalization))
    return dict(sorted(found.items(), key=lambda item: item[0].encode()))


def encode(sentences: Iterable[str], vocab: Vocab) -> list[list[int]]:
    """Ids of each sentence; special tokens in the text are ordinary text, and none are added."""
    library = vocab.library_tokenizer(added=False)
    return [library.encode(sentence, add_special_tokens=False).ids for sentence in sentences]
