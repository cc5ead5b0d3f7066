from __future__ import annotations

import dataclasses
import functools
import gzip
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import sections
from corpusforge.schemas import DOCUMENTS, tokens_schema
from corpusforge.sections import Vocab as Section
from corpusforge.sentences import splitter
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.byte_bpe import learn as learn_bpe
from corpusforge.tokens.counts import count_words, pack_counts
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.families import learn as learn_family
from corpusforge.tokens.families import segmentation_of, select
from corpusforge.tokens.gpt2_split import GPT2
from corpusforge.tokens.mask_lexicon import Lexicon
from corpusforge.tokens.splitting import Words
from corpusforge.tokens.vocab import Vocab
from corpusforge.tokens.wordpiece import WordPiece, learn
from tests.draws import draws
from tests.oracles import gpt2, wordpiece
from tests.tokens import gpt2_text, hard_text

SENTENCES = [
    "The quick brown fox jumps over the lazy dog. ",
    "Zoë mag Käse! ",
    "東京で会う。",
    "mask cls unused sep pad ",
]


def vocabulary(lowercase: bool, size: int = 512) -> Vocab:
    counts = count_words(
        pa.array([s * 3 for s in SENTENCES] + ["[ ] ' 3 # a b c . ! x é e 한국어"]), BertSegmentation(lowercase)
    )
    return learn(counts, sections.Vocab(size=size, lowercase=lowercase)).vocab


UNCASED, CASED = vocabulary(True), vocabulary(False)


def documents(texts: list[str]) -> pa.RecordBatch:
    empty = {"url": None, "source": "s", "position": 0, "timestamp": None, "language": None}
    return pa.RecordBatch.from_pylist([{"id": str(i), "text": t, **empty} for i, t in enumerate(texts)], DOCUMENTS)


def sentences_of(texts: list[str]) -> list[list[str]]:
    spans = splitter.sentence_spans(pa.array(texts, pa.string()))
    whole = [bytes(spans.data[a:b]).decode() for a, b in zip(spans.starts, spans.stops, strict=True)]
    return [whole[a:b] for a, b in zip(spans.offsets[:-1], spans.offsets[1:], strict=True)]


def expected(texts: list[str], vocab: Vocab) -> list[dict[str, object]]:
    tokens = []
    for i, sentences in enumerate(sentences_of(texts)):
        ids = [row for row in wordpiece.encode(sentences, vocab) if row]
        tokens.append({"document": str(i), "ids": list(itertools.chain(*ids)), "sentences": [len(row) for row in ids]})
    return tokens


@given(hard_text.columns, st.sampled_from([UNCASED, CASED]))
def test_ids_are_the_librarys(texts: list[str], vocab: Vocab) -> None:
    assert Encoder(vocab).encode(documents(texts)).to_pylist() == expected(texts, vocab)


@given(st.lists(st.sampled_from([*SENTENCES, *hard_text.TRAPS]), max_size=20).map("".join))
def test_a_full_cache_changes_nothing(document: str) -> None:
    batch = documents([document, document])
    tight = Encoder(UNCASED, cache_bytes=300)
    assert [tight.encode(batch) for _ in range(3)] == [Encoder(UNCASED).encode(batch)] * 3


@given(
    st.lists(
        st.sampled_from(["[MASK]", "[CLS]", "[unused3]", "[PAD]", "[SEP]", "[", "]", " ", "mask", "é"]), max_size=9
    )
)
def test_text_never_becomes_special(parts: list[str]) -> None:
    ids = set(Encoder(UNCASED).encode(documents(["".join(parts)]))["ids"].flatten().to_pylist())
    specials = UNCASED.specials
    assert not ids & {specials.pad, specials.cls, specials.sep, specials.mask, *UNCASED.unused}


def test_literal_specials_are_ordinary_pieces() -> None:
    batch = Encoder(UNCASED).encode(documents(["the [MASK] of [unused3]"]))
    tokens = [UNCASED.tokens[i] for i in batch["ids"][0].as_py()]
    assert tokens[:5] == ["the", "[", "mask", "]", "o"]


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=9), st.integers(1, 60))
def test_batches_change_nothing(texts: list[str], size: int) -> None:
    batch = documents(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpusforge.tokens.encode.BATCH_BYTES", size)
        small = Encoder(UNCASED).encode_counted(batch)
    whole = Encoder(UNCASED).encode_counted(batch)
    assert small.tokens == whole.tokens
    assert small.statistics == whole.statistics
    rows = [Encoder(UNCASED).encode(batch.slice(i, 1)).to_pylist()[0] for i in range(len(texts))]
    assert rows == whole.tokens.to_pylist()


def test_statistics() -> None:
    encoded = Encoder(UNCASED).encode_counted(documents(["The dog. \u200b \u2603", "", "a\u302e\U0001d165"]))
    assert encoded.statistics["documents"] == 3
    assert encoded.statistics["sentences_by_library"] == 1
    assert encoded.statistics["unknown_tokens"] == 2
    assert encoded.tokens["sentences"].to_pylist()[1] == []


def test_sentences_without_tokens_are_counted_and_left_out() -> None:
    encoded = Encoder(UNCASED).encode_counted(documents(["\u200b\u200b"]))
    assert encoded.statistics["sentences_empty"] == 1
    assert encoded.tokens.to_pylist() == [{"document": "0", "ids": [], "sentences": []}]


def test_no_documents() -> None:
    encoded = Encoder(UNCASED).encode_counted(documents([]))
    assert encoded.tokens.num_rows == 0
    assert encoded.tokens.schema == tokens_schema(UNCASED.size)


def test_large_vocabularies_have_wide_ids() -> None:
    vocab = UNCASED.padded(70_016)
    batch = Encoder(vocab).encode(documents(SENTENCES))
    assert batch.schema == tokens_schema(70_016)
    assert batch["ids"].to_pylist() == Encoder(UNCASED).encode(documents(SENTENCES))["ids"].to_pylist()


def test_an_encoder_is_pickled_without_its_cache() -> None:
    batch = documents(SENTENCES)
    encoder = Encoder(UNCASED)
    first = encoder.encode(batch)
    assert pickle.loads(pickle.dumps(encoder)).encode(batch) == first


def test_words_too_long_are_unknown() -> None:
    batch = Encoder(UNCASED).encode(documents(["x" * 101, "x" * 100]))
    assert batch["ids"][0].as_py() == [UNCASED.specials.unk]
    assert len(batch["ids"][1]) == 100


def test_nasty_files(shared_data: Path) -> None:
    lines = (shared_data / "nasty" / "blns.txt").read_text("utf-8").split("\n")
    lines += (
        (shared_data / "nasty" / "ungoliant-garbage.txt").read_bytes()[:100_000].decode(errors="replace").split("\n")
    )
    assert Encoder(UNCASED).encode(documents(lines)).to_pylist() == expected(lines, UNCASED)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text_en/enwiki2018-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_real_text(shared_data: Path, name: str, lowercase: bool) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(120), strict=False)]
    vocab = learn(
        count_words(pa.array(texts[:60]), BertSegmentation(lowercase)),
        sections.Vocab(size=4096, alphabet=1500, lowercase=lowercase),
    ).vocab
    assert Encoder(vocab).encode(documents(texts)).to_pylist() == expected(texts, vocab)


# Word starts: BERT's rule for ``##``, the rule of ids for other families, and the first token of every sentence.


@dataclasses.dataclass(frozen=True)
class Marked(WordPiece):
    """A family in which a word begins only at tokens with an even id."""

    def starts_word(self, vocab: Vocab) -> np.ndarray:
        return np.arange(vocab.size) % 2 == 0


class Pairs:
    """Joins each word at an odd position of its row to the one before it."""

    def joined(self, words: Words) -> np.ndarray:
        places = np.arange(len(words.values)) - np.repeat(words.offsets[:-1], np.diff(words.offsets))
        return places % 2 == 1


def starts_of(batch: pa.RecordBatch) -> list[list[bool]]:
    return batch["word_starts"].to_pylist()


@draws(50)
@given(st.lists(st.lists(st.sampled_from([*SENTENCES, "x", "\u2603 ", "\u200b"]), max_size=4).map("".join), max_size=4))
def test_berts_rule(texts: list[str]) -> None:
    batch = Encoder(UNCASED, word_starts=True).encode(documents(texts))
    assert batch.schema == tokens_schema(UNCASED.size, word_starts=True)
    assert batch.drop_columns(["word_starts"]) == Encoder(UNCASED).encode(documents(texts))
    for row in batch.to_pylist():
        assert row["word_starts"] == [not UNCASED.tokens[i].startswith("##") for i in row["ids"]]


def test_the_rule_of_ids_counts_inside_sentences() -> None:
    vocab = dataclasses.replace(UNCASED, family=Marked(UNCASED.segmentation))
    row = Encoder(vocab, word_starts=True).encode(documents([*SENTENCES[:2], "".join(SENTENCES)])).to_pylist()[2]
    firsts = set(np.cumsum([0, *row["sentences"]]).tolist())
    assert len(firsts) > 2
    assert row["word_starts"] == [i % 2 == 0 or at in firsts for at, i in enumerate(row["ids"])]


def test_words_that_are_joined_do_not_begin_one() -> None:
    encoder = Encoder(UNCASED, word_starts=True, joiner=Pairs())
    text = "The dog. The quick brown fox."
    row = pickle.loads(pickle.dumps(encoder)).encode(documents([text])).to_pylist()[0]
    words, at = [], 0
    for sentence in sentences_of([text])[0]:
        for place, word in enumerate(UNCASED.segmentation.splitter().words_of(sentence)):
            pieces = Encoder(UNCASED).encode_words(pa.array([word]))[1][0]
            words += [place % 2 == 0] + [False] * (pieces - 1)
            at += pieces
    assert row["word_starts"] == words


# Words to mask in every family: white space separates them, and a phrase of a lexicon is one, also inside text.

YORK = "Hello, old York! We saw new york and a new yorker in New York."
FAMILIES = ("wordpiece", "bpe", "unigram", "sentencepiece-bpe")


@functools.lru_cache
def family_vocabulary(model: str) -> Vocab:
    section = Section(model=model, size=320, unused=0, allow_any_size=True)
    text = [YORK, "the quick brown fox jumps over lazy dogs", "a b c d e f g h i j k l m n o p q r s t u v w x y z"]
    counted = count_words(pa.array(text * 20), segmentation_of(section))
    return learn_family(select([block for _, block in pack_counts(counted, 1)], section)[0], section).vocab


def units(model: str, lexicon: str = "") -> list[list[str]]:
    """The sentences of the text as the units of their tokens."""
    vocab = family_vocabulary(model)
    joins = Lexicon(lexicon.encode(), vocab.segmentation) if lexicon else None
    row = Encoder(vocab, word_starts=True, joiner=joins).encode(documents([YORK])).to_pylist()[0]
    sentences, at = [], 0
    for count in row["sentences"]:
        unit_ids: list[list[int]] = []
        for id_, starts in zip(row["ids"][at : at + count], row["word_starts"][at : at + count], strict=True):
            if starts:
                unit_ids.append([])
            unit_ids[-1].append(id_)
        tokenizer = vocab.library_tokenizer()
        sentences.append([tokenizer.decode(unit).strip() for unit in unit_ids])
        at += count
    return sentences


@pytest.mark.parametrize("model", FAMILIES)
def test_white_space_separates_words(model: str) -> None:
    whole = [sentence.lower().split() for sentence in ("Hello, old York!", YORK[17:])]
    sentences = [[unit.lower() for unit in sentence] for sentence in units(model)]
    if model == "wordpiece":  # where punctuation is a word of its own
        assert sentences[0] == ["hello", ",", "old", "york", "!"]
    else:
        assert sentences == whole


@pytest.mark.parametrize("model", FAMILIES)
def test_a_phrase_is_one_word(model: str) -> None:
    mask_units = [unit for sentence in units(model, "New York\nWe saw") for unit in sentence]
    assert "we saw" in [unit.lower() for unit in mask_units]
    assert any(unit.lower().startswith("new york") for unit in mask_units)
    assert "a" in mask_units  # and "new yorker" is no phrase
    assert not any(unit.lower().startswith("new yorker") for unit in mask_units)


# Tokens of bytes, where white space has tokens too.

BPE_SENTENCES = [
    "The quick brown fox isn't lazy. ",
    "Zoë's naïve,  they're not.\n\n",
    "東京で会う。",
    " <s> mask <mask> ",
]
BPE = learn_bpe(count_words(pa.array([s * 3 for s in BPE_SENTENCES]), GPT2), sections.Vocab(size=384, unused=4)).vocab


def bpe_rows(texts: list[str]) -> list[list[str]]:
    """Sentences of each document, each with the white space before it, but for the first."""
    spans = splitter.sentence_spans(pa.array(texts, pa.string()))
    documents_sentences = []
    for a, b in itertools.pairwise(spans.offsets.tolist()):
        begins = [*spans.starts[a : min(a + 1, b)].tolist(), *spans.stops[a : max(a, b - 1)].tolist()]
        documents_sentences.append(
            [bytes(spans.data[x:y]).decode() for x, y in zip(begins, spans.stops[a:b], strict=True)]
        )
    return documents_sentences


def bpe_expected(texts: list[str], vocab: Vocab) -> list[dict[str, object]]:
    tokens = []
    for i, rows in enumerate(bpe_rows(texts)):
        ids = gpt2.encode(rows, vocab)
        tokens.append({"document": str(i), "ids": list(itertools.chain(*ids)), "sentences": [len(row) for row in ids]})
    return tokens


@given(gpt2_text.columns)
def test_ids_of_bytes_are_the_librarys(texts: list[str]) -> None:
    assert Encoder(BPE).encode(documents(texts)).to_pylist() == bpe_expected(texts, BPE)


@given(gpt2_text.columns)
def test_text_never_produces_specials_and_is_kept(texts: list[str]) -> None:
    library = BPE.library_tokenizer(added=False)
    rows = [row for rows in bpe_rows(texts) for row in rows]
    batch = Encoder(BPE).encode(documents(texts))
    assert not set(batch["ids"].flatten().to_pylist()) & {*BPE.reserved}
    kept = "".join(library.decode(ids, skip_special_tokens=False) for ids in batch["ids"].to_pylist())
    assert kept == "".join(rows)


def test_a_document_of_sentences_has_the_ids_of_its_text() -> None:
    whole = "The quick fox isn't lazy. Zoë's naïve,  they're not.\n\nIt (still) is 42 % fun!  東京で会う。That's all."
    batch = Encoder(BPE).encode(documents([f"\n {whole} \n", whole]))
    assert batch["ids"].to_pylist() == gpt2.encode([whole], BPE) * 2
    assert len(batch["sentences"][0]) >= 4


def test_literal_specials_are_plain_bytes() -> None:
    texts = ["<s> a <pad></s> <unk> <mask> [unused0] <mask>", "<mask>", "</s>"]
    batch = Encoder(BPE).encode(documents(texts))
    assert batch.to_pylist() == bpe_expected(texts, BPE)
    assert not set(batch["ids"].flatten().to_pylist()) & {*BPE.reserved}


@pytest.mark.slow
def test_very_long_words_and_lines() -> None:
    texts = ["x" * 100_000, "東" * 50_000, " " * 30_000 + "a", "'s" * 20_000, "a b\n" * 300_000, "a\u3000" * 50_000]
    batch = Encoder(BPE).encode(documents(texts))
    assert batch.to_pylist() == bpe_expected(texts, BPE)


def test_a_full_cache_changes_nothing_for_bytes() -> None:
    batch = documents(["".join(BPE_SENTENCES), "and others"])
    tight = Encoder(BPE, cache_bytes=300)
    assert [tight.encode(batch) for _ in range(3)] == [Encoder(BPE).encode(batch)] * 3


def test_words_start_at_white_space_and_sentences() -> None:
    batch = Encoder(BPE, word_starts=True).encode(documents(["xq isn't  zw."]))
    tokens = [BPE.tokens[i] for i in batch["ids"][0].as_py()]
    starts = [token for token, begins in zip(tokens, batch["word_starts"][0].as_py(), strict=True) if begins]
    assert starts == ["x", *[token for token in tokens if token.startswith("Ġ")]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text_en/enwiki2018-dev.jsonl.gz", "text_zh/zhwiki-dev.jsonl.gz"])
def test_real_text_as_bytes(shared_data: Path, name: str) -> None:
    with gzip.open(shared_data / name, "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(120), strict=False)]
    vocab = learn_bpe(count_words(pa.array(texts[:60]), GPT2), sections.Vocab(size=4096, unused=0)).vocab
    assert Encoder(vocab).encode(documents(texts)).to_pylist() == bpe_expected(texts, vocab)


def test_nasty_files_as_bytes(shared_data: Path) -> None:
    nasty = shared_data / "nasty"
    lines = (nasty / "blns.txt").read_text("utf-8").split("\n")
    lines += (nasty / "ungoliant-garbage.txt").read_bytes()[:200_000].decode(errors="replace").split("\n")
    assert Encoder(BPE).encode(documents(lines)).to_pylist() == bpe_expected(lines, BPE)


def bpe_texts(path: Path, limit: int = 1_000_000) -> list[str]:
    """About the first million characters of a file."""
    if path.suffix != ".gz":
        return [path.read_bytes()[:limit].decode("utf-8", "replace")]
    texts: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        while sum(map(len, texts)) < limit and (line := file.readline()):
            texts.append(json.loads(line)["text"])
    return texts


FILES = [
    "text_en/*.jsonl.gz",
    "text_en/*.txt",
    "text_zh/*.jsonl.gz",
    "text_zh/*.txt",
    "text_zh/*.json",
    "nasty/*.txt",
    "nasty/*.json",
]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", FILES)
def test_all_shared_text(shared_data: Path, pattern: str) -> None:
    library, encoder = BPE.library_tokenizer(added=False), Encoder(BPE)
    for path in sorted(p for p in shared_data.glob(pattern) if p.is_file()):
        texts = bpe_texts(path)
        rows = [row for rows in bpe_rows(texts) for row in rows]
        expected = [np.array(e.ids) for e in library.encode_batch_fast(rows, add_special_tokens=False)]
        ours = encoder.encode(documents(texts))
        assert np.array_equal(ours["ids"].flatten(), np.concatenate([*expected, []])), path
        assert ours["sentences"].flatten().to_pylist() == [len(ids) for ids in expected]
