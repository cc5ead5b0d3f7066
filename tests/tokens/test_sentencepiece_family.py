from __future__ import annotations

import base64
import contextlib
import gzip
import io
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from corpusforge import errors, recipe, sections
from corpusforge.text import text_bytes
from corpusforge.tokens import families
from corpusforge.tokens import sentencepiece_file as files
from corpusforge.tokens.counts import COUNTS, count_words, pack_counts
from corpusforge.tokens.encode import Encoder
from corpusforge.tokens.families import adopt_vocab, load_vocab
from corpusforge.tokens.report import describe
from corpusforge.tokens.sentencepiece_family import SentencePiece, charsmap_of, learn, select
from corpusforge.tokens.sentencepiece_split import SentencePieceSegmentation
from corpusforge.tokens.vocab import Vocab
from tests.tokens import hard_text

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, the quick dog. ",
    "Zoë mag Käse, und er mag Kaffee! ",
    "東京で会う。東京で 会いました。",
    "mask cls unused sep pad unk [unused] <unknown> <padding> CLS] MASK] ",
]
ALBERT = SentencePieceSegmentation()
MODELS = {"unigram": "unigram", "bpe": "sentencepiece-bpe"}


def settings_of(algorithm: str, size: int, **settings: Any) -> sections.Vocab:
    return sections.Vocab(model=MODELS[algorithm], size=size, **settings)


def vocabulary(algorithm: str, normalization: str, size: int = 320) -> Vocab:
    settings = settings_of(algorithm, size, normalization=normalization, unused=20, coverage=1.0)
    segmentation = families.segmentation_of(settings)
    return learn(count_words(pa.array([sentence * 3 for sentence in SENTENCES]), segmentation), settings).vocab


VOCABS = {f"{a}-{n}": vocabulary(a, n) for a in MODELS for n in ("albert", "nmt_nfkc")}
LIBRARY = {name: vocab.library_tokenizer(added=False) for name, vocab in VOCABS.items()}
ENCODERS = {name: Encoder(vocab) for name, vocab in VOCABS.items()}
names = st.sampled_from(sorted(VOCABS))
MORE = ["▁", "``", "''", "\r\n", "<pad>", "<unk>", " <unk>", "[unused0]", " 1", "[SEP]", "quick", " the", "東京で"]
columns = st.lists(
    hard_text.texts | st.lists(st.sampled_from(hard_text.TRAPS + MORE), max_size=20).map("".join), max_size=6
)


def encode(texts: list[str], name: str) -> list[list[int]]:
    encoder = ENCODERS[name]
    words = encoder.vocab.segmentation.splitter().split(*text_bytes(pa.array(texts, pa.string())))
    ids, lengths = encoder.encode_words(words.values)
    ends = np.concatenate([[0], np.cumsum(lengths)])[words.offsets].tolist()
    return [ids[a:b].tolist() for a, b in itertools.pairwise(ends)]


def save(vocab: Vocab, folder: Path) -> Path:
    for name, data in vocab.save_files().items():
        (folder / name).write_bytes(data)
    return folder


@given(columns, names)
def test_ids_are_the_librarys_and_never_special(texts: list[str], name: str) -> None:
    ids = encode(texts, name)
    assert ids == [LIBRARY[name].encode(text, add_special_tokens=False).ids for text in texts]
    vocab = VOCABS[name]
    reserved = set(vocab.reserved) - {vocab.specials.unk}
    assert not reserved & {i for row in ids for i in row}


@pytest.mark.parametrize("name", sorted(VOCABS))
def test_a_saved_folder_loads_as_the_same_vocabulary(tmp_path: Path, name: str) -> None:
    vocab = VOCABS[name]
    loaded = load_vocab(str(save(vocab, tmp_path)))
    assert loaded == vocab
    assert loaded.digest == vocab.digest
    assert loaded.save_files() == vocab.save_files()
    assert pickle.loads(pickle.dumps(vocab)) == vocab
    assert vocab.tokens[:5] == ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    assert vocab.size == 320
    assert vocab.tokens[-1] == f"[unused{len(vocab.unused) - 1}]"


@pytest.mark.parametrize("name", sorted(VOCABS))
def test_transformers_gives_the_same_ids(tmp_path: Path, name: str) -> None:
    transformers = pytest.importorskip("transformers")
    vocab = VOCABS[name]
    loaded = transformers.AutoTokenizer.from_pretrained(str(save(vocab, tmp_path)))
    assert len(loaded) == vocab.size
    texts = [*SENTENCES, "``quick'' fox\n\n  É ﬁ x", "각 ｶﾞ e\u0301 ½ 🇩🇪", ""]
    assert [loaded.encode(text, add_special_tokens=False) for text in texts] == encode(texts, name)
    special = vocab.specials
    pair = loaded("the", "dog")
    the, dog = encode(["the", "dog"], name)
    assert pair["input_ids"] == [special.cls, *the, special.sep, *dog, special.sep]
    assert (loaded.pad_token_id, loaded.unk_token_id, loaded.mask_token_id) == (0, 1, 4)


@pytest.mark.parametrize("name", sorted(VOCABS))
def test_sentencepiece_reads_the_model_and_gives_the_same_ids(name: str) -> None:
    vocab = VOCABS[name]
    model = sentencepiece.SentencePieceProcessor(model_proto=vocab.save_files()["spiece.model"])
    assert (len(model), model.pad_id(), model.unk_id()) == (vocab.size, 0, 1)
    texts = [*SENTENCES, "``quick'' fox\n\n  É ﬁ x", "한국어 ½ Ａ\u3000b\u00a0c", "<unk> <pad> [CLS] [unused1]", ""]
    assert [model.encode(text) for text in texts] == encode(texts, name)


def test_a_model_alone_is_adopted(tmp_path: Path) -> None:
    vocab = VOCABS["unigram-albert"]
    (tmp_path / "spiece.model").write_bytes(vocab.save_files()["spiece.model"])
    adopted = adopt_vocab(str(tmp_path))
    assert adopted.tokens == vocab.tokens
    texts = [*SENTENCES, "``quick'' fox É"]
    library = adopted.library_tokenizer(added=False)
    assert [library.encode(text, add_special_tokens=False).ids for text in texts] == encode(texts, "unigram-albert")


def test_an_alberts_folder_is_adopted(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pieces = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0)]
    pieces += [("▁", -2.0), ("▁the", -2.5), ("f", -4.0), ("ox", -4.5), ("o", -6.0), ("x", -6.0)]
    albert = transformers.AlbertTokenizer(pieces, _spm_precompiled_charsmap=base64.b64decode(charsmap_of("nmt_nfkc")))
    albert.save_pretrained(str(tmp_path))
    adopted = adopt_vocab(str(tmp_path))
    assert adopted.size == 64
    assert adopted.family.name == "unigram"
    texts = ["The fox", "``fo''  xx", "½ ﬁx"]
    library = adopted.library_tokenizer(added=False)
    expected = [albert.encode(text, add_special_tokens=False) for text in texts]
    assert [library.encode(text, add_special_tokens=False).ids for text in texts] == expected


def test_other_kinds_are_refused(tmp_path: Path) -> None:
    folder = save(VOCABS["unigram-albert"], tmp_path)
    raw = json.loads((folder / "tokenizer.json").read_text())
    raw["normalizer"] = {"type": "Strip", "strip_left": True, "strip_right": True}
    (folder / "tokenizer.json").write_text(json.dumps(raw))
    with pytest.raises(errors.ManifestInvalid, match="of another kind: Strip"):
        load_vocab(str(folder))


def test_a_merge_to_a_special_token_is_refused() -> None:
    family = SentencePiece("bpe", ALBERT, merges=(("[MASK", "]"),))
    tokens = VOCABS["bpe-albert"]
    with pytest.raises(errors.ManifestInvalid, match="could produce"):
        Vocab(tokens.tokens, tokens.specials, tokens.unused, family)


def test_words_begin_with_the_mark() -> None:
    vocab = VOCABS["unigram-albert"]
    starts = vocab.family.starts_word(vocab)
    assert starts[[0, 1, 4, vocab.size - 1, vocab.tokens.index("▁")]].all()
    assert not starts[vocab.tokens.index("d")]


def trained_on_text(texts: list[str], algorithm: str, size: int) -> files.Model:
    """The library's pieces from reading text. Unigram's depend on the neighbors of a word: it reads sorted words."""
    rows = [" ".join(word.removeprefix("▁") for word in ALBERT.splitter().words_of(text)) for text in texts]
    if algorithm == "unigram":
        rows = sorted(word for row in rows for word in row.split(" "))
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([row for row in rows if row]),
        model_writer=written,
        model_type=algorithm,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=0.9995,
        normalization_rule_name="identity",
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
    )
    return files.read_model(written.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_learned_as_from_the_text(shared_data: Path, algorithm: str) -> None:
    with gzip.open(shared_data / "text_en/enwiki2018-dev.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [x for line, _ in zip(file, range(60), strict=False) for x in json.loads(line)["text"].split("\n")]
    counts = count_words(pa.array(lines), ALBERT)
    settings = settings_of(algorithm, 1024, unused=24, coverage=0.9995)
    vocab = learn(counts, settings).vocab
    expected = trained_on_text(lines, algorithm, 1000)
    assert vocab.tokens[:1000] == expected.pieces
    shuffled = counts.take(np.random.default_rng(3).permutation(len(counts)))
    assert learn(shuffled, settings).vocab == vocab


def test_long_words_are_left_out_or_sampled_and_counted() -> None:
    clauses = [f"▁{'東京都港区' * 6}{chr(0x4E00 + i)}" for i in range(200)]
    counts = pa.Table.from_pydict(
        {"word": [*clauses, "▁a", "▁" + "b" * 5000], "count": pa.array([1] * 202, pa.uint64())}, COUNTS
    )
    blocks = [block for _, block in pack_counts(counts, 4)]
    kept, statistics = select(blocks, min_count=1, max_words=1000, sampled_bytes=10_000)
    assert select(blocks[::-1], min_count=1, max_words=1000, sampled_bytes=10_000)[0] == kept
    assert statistics["unsegmented_words"] == 201
    assert statistics["unsegmented_share"] in (1 / 2, 1 / 4, 1 / 8)
    assert 2000 < sum(len(word.encode()) for word in kept["word"].to_pylist()) <= 10_000 + 4
    everything, _ = select(blocks, min_count=1, max_words=1000)
    assert everything == counts.take(pc.sort_indices(counts["word"]))
    learned = learn(everything, settings_of("unigram", 448, unused=0, coverage=1.0)).statistics
    assert (learned["words_too_long"], learned["words_learned_from"]) == (1, 201)


def test_a_coverage_the_library_does_not_take_is_refused_by_its_flag() -> None:
    settings = recipe.override(sections.Recipe(), {"vocab.coverage": "0.98"}, where="the test")
    assert settings.vocab.coverage == 0.98
    with pytest.raises(errors.RecipeInvalid, match=r"it must be 0 or lie between 0\.98 and 1"):
        recipe.override(sections.Recipe(), {"vocab.coverage": "0.5"}, where="the test")


def test_a_size_too_small_is_refused() -> None:
    counts = count_words(pa.array(SENTENCES), ALBERT)
    with pytest.raises(errors.RecipeInvalid, match="not a multiple"):
        learn(counts, settings_of("unigram", 100))
    for algorithm in ("unigram", "bpe"):
        for unused in (40, 59, 128):
            with pytest.raises(errors.RecipeInvalid, match=r"is less than the \d+ of characters.* --size") as raised:
                learn(counts, settings_of(algorithm, 64, unused=unused))
            assert "character_coverage" not in str(raised.value) and "INTERNAL" not in str(raised.value)
        with pytest.raises(errors.InputMissing, match="none to learn from"):
            learn(count_words(pa.array([""]), ALBERT), settings_of(algorithm, 64, unused=3))


@given(st.binary(max_size=60))
def test_damaged_models_are_refused_with_reason(data: bytes) -> None:
    with contextlib.suppress(errors.ManifestInvalid):
        files.read_model(data)


def test_a_model_file_round_trips() -> None:
    for vocab in VOCABS.values():
        data = vocab.save_files()["spiece.model"]
        model = files.read_model(data)
        ids = {"unk": 1, "bos": 2, "eos": 3, "pad": 0}
        assert files.write_model(model, ids) == data


def test_figures_do_not_count_the_mark() -> None:
    figures = describe(VOCABS["unigram-albert"], pa.array(["the dog ☃ ☃"]))
    assert figures["character_coverage"] == pytest.approx(1 - 2 / 8)
    assert figures["unknown_characters"] == [{"character": "☃", "count": 2}]


@pytest.mark.parametrize("model", ["unigram", "sentencepiece-bpe"])
@pytest.mark.parametrize("normalization", ["albert", "nmt_nfkc"])
def test_families_of_a_recipe(model: str, normalization: str) -> None:
    section = sections.Vocab(model=model, normalization=normalization, lowercase=False, size=256, unused=3, min_count=1)
    counts = count_words(pa.array(SENTENCES), families.segmentation_of(section))
    kept, _ = families.select([block for _, block in pack_counts(counts, 2)], section)
    vocab = families.learn(kept, section).vocab
    assert (vocab.size, vocab.family.name) == (256, model)
    assert vocab.segmentation == families.segmentation_of(section)
    assert vocab.segmentation.splitter().words_of("Zoë") == ["▁Zoë"]
