from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from corpusforge import sections
from corpusforge.errors import ManifestInvalid, RecipeInvalid
from corpusforge.tokens import byte_bpe, families
from corpusforge.tokens.byte_bpe import ByteBpe, arrange, learn
from corpusforge.tokens.counts import COUNTS, count_words
from corpusforge.tokens.families import adopt_vocab, load_vocab
from corpusforge.tokens.gpt2_split import GPT2, LETTERS, Gpt2Segmentation
from corpusforge.tokens.vocab import Specials, Vocab

MERGES = [
    ("h", "e"),
    ("l", "l"),
    ("he", "ll"),
    ("Ġ", "w"),
    ("o", "r"),
    ("Ġw", "or"),
    ("Ã", "©"),
    ("'", "s"),
    ("Ġ", "Ġ"),
]


def vocabulary(size: int = 320) -> Vocab:
    return arrange(MERGES, size)


def write(vocab: Vocab, folder: Path, *without: str) -> str:
    folder.mkdir(exist_ok=True)
    for name, data in vocab.save_files().items():
        if name not in without:
            (folder / name).write_bytes(data)
    return str(folder)


def change(folder: str, edit) -> str:
    raw = json.loads(Path(folder, "tokenizer.json").read_text("utf-8"))
    edit(raw)
    Path(folder, "tokenizer.json").write_text(json.dumps(raw), "utf-8")
    return folder


def test_the_layout_is_robertas() -> None:
    vocab = vocabulary()
    assert vocab.tokens[:5] == ("<s>", "<pad>", "</s>", "<unk>", "!")
    assert vocab.specials == Specials(pad=1, unk=3, cls=0, sep=2, mask=4 + 256 + len(MERGES))
    assert vocab.tokens[vocab.specials.mask :][:3] == ("<mask>", "[unused0]", "[unused1]")
    assert vocab.size == 320
    assert vocab.unused == tuple(range(vocab.specials.mask + 1, 320))


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    vocab = vocabulary()
    prefixed = dataclasses.replace(vocab, family=ByteBpe(vocab.family.merges, Gpt2Segmentation(True)))
    for n, one in enumerate([vocab, prefixed]):
        loaded = load_vocab(write(one, tmp_path / str(n)))
        assert loaded == one
        assert loaded.digest == one.digest
        assert load_vocab(write(one, tmp_path / f"{n}-native", "tokenizer.json")) == one
    assert vocab.digest != prefixed.digest


def test_vocab_json_and_merges_alone_are_adopted(tmp_path: Path) -> None:
    odd = arrange(MERGES, 4 + 256 + len(MERGES) + 1)
    folder = write(odd, tmp_path / "v", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
    adopted = adopt_vocab(folder)
    assert adopted.tokens[: odd.size] == odd.tokens
    assert (adopted.size, adopted.specials, len(adopted.unused)) == (320, odd.specials, 320 - odd.size)
    assert adopted == vocabulary()


def test_the_digest_sees_merges_and_their_order() -> None:
    vocab = vocabulary()
    turned = dataclasses.replace(vocab, family=ByteBpe(vocab.family.merges[::-1]))
    assert len({vocab.digest, turned.digest, vocabulary(384).digest}) == 3


def test_transformers_loads_the_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    vocab = vocabulary()
    folder = write(vocab, tmp_path / "v")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = {token: i for i, token in enumerate(vocab.tokens)}
    assert type(tokenizer).__name__.startswith("RobertaTokenizer")
    assert len(tokenizer) == vocab.size
    assert tokenizer.get_vocab() == ids
    special_ids = [getattr(tokenizer, f"{key}_token_id") for key in ("pad", "unk", "cls", "sep", "mask", "bos", "eos")]
    assert special_ids == [1, 3, 0, 2, vocab.specials.mask, 0, 2]
    assert tokenizer("hello's world").input_ids == [
        0, ids["hell"], ids["o"], ids["'s"], ids["Ġwor"], ids["l"], ids["d"], 2
    ]  # fmt: skip
    assert tokenizer("h", " é").input_ids == [0, ids["h"], 2, 2, ids["Ġ"], ids["Ã©"], 2]
    # RoBERTa's <mask> takes the space before it along.
    assert tokenizer("h <mask>.").input_ids == [0, ids["h"], vocab.specials.mask, ids["."], 2]
    for text in ("hello  world's é 東京 \n\n x", "[unused0] madeupword", " hell\u3000o"):
        assert tokenizer(text, add_special_tokens=False).input_ids == (
            vocab.library_tokenizer(added=False).encode(text, add_special_tokens=False).ids
        )
        assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True) == text


def test_what_transformers_saves_is_adopted(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    odd = arrange(MERGES, 4 + 256 + len(MERGES) + 1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(write(odd, tmp_path / "v"))
    tokenizer.add_special_tokens({"additional_special_tokens": ["<ent>"]})
    tokenizer.save_pretrained(str(tmp_path / "again"))
    vocab = adopt_vocab(str(tmp_path / "again"))
    assert vocab.tokens[: odd.size + 1] == (*odd.tokens, "<ent>")
    assert odd.size in vocab.unused
    assert (vocab.specials, vocab.family) == (odd.specials, odd.family)


def test_entries_that_no_merge_produces_are_unused(tmp_path: Path) -> None:
    tokens = ("<s>", "<pad>", "</s>", "<unk>", *sorted(LETTERS), "<|endoftext|>", "hello", "madeupword0000", "<mask>")
    (tmp_path / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), "utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    assert load_vocab(str(tmp_path)).unused == (260, 261, 262)


def test_specials_that_text_could_produce_are_refused() -> None:
    vocab = vocabulary()
    for token in ("hell", "!"):
        at = vocab.tokens.index(token)
        with pytest.raises(ManifestInvalid, match="plain text could produce"):
            dataclasses.replace(vocab, specials=dataclasses.replace(vocab.specials, mask=at))
        with pytest.raises(ManifestInvalid, match="plain text could produce"):
            dataclasses.replace(vocab, unused=(*vocab.unused, at))


def test_a_merge_that_makes_a_special_is_refused() -> None:
    merges = [("<", "s"), ("<s", ">")]
    with pytest.raises(ManifestInvalid, match="twice"):
        arrange(merges, 320)


def test_bytes_and_merges_must_have_tokens() -> None:
    vocab = vocabulary()
    without = tuple("xyzzy" if token == "Ĥ" else token for token in vocab.tokens)
    with pytest.raises(ManifestInvalid, match="1 bytes have no token"):
        dataclasses.replace(vocab, tokens=without)
    with pytest.raises(ManifestInvalid, match="the merge q q"):
        dataclasses.replace(vocab, family=ByteBpe((("q", "q"),)))


@pytest.mark.parametrize(
    "edit",
    [
        lambda raw: raw["model"].update(ignore_merges=True),
        lambda raw: raw["model"].update(dropout=0.1),
        lambda raw: raw["model"].update(end_of_word_suffix="</w>"),
        lambda raw: raw["pre_tokenizer"].update(use_regex=False),
        lambda raw: raw.update(pre_tokenizer=None),
        lambda raw: raw.update(normalizer={"type": "NFC"}),
    ],
)
def test_other_kinds_of_bpe_are_refused(tmp_path: Path, edit) -> None:
    with pytest.raises(ManifestInvalid, match="another kind"):
        load_vocab(change(write(vocabulary(), tmp_path / "v"), edit))


def test_merges_of_older_files_are_strings(tmp_path: Path) -> None:
    def older(raw) -> None:
        raw["model"]["merges"] = [" ".join(pair) for pair in raw["model"]["merges"]]

    assert load_vocab(change(write(vocabulary(), tmp_path / "v"), older)) == vocabulary()


def test_damaged_native_files(tmp_path: Path) -> None:
    folder = Path(write(vocabulary(), tmp_path / "v", "tokenizer.json"))
    (folder / "merges.txt").write_text("#version: 0.2\nh e l\n", "utf-8")
    with pytest.raises(ManifestInvalid, match="not a pair: h e l"):
        load_vocab(str(folder))
    (folder / "vocab.json").write_text("{", "utf-8")
    with pytest.raises(ManifestInvalid, match="unreadable tokenizer"):
        load_vocab(str(folder))
    (folder / "vocab.json").unlink()
    with pytest.raises(ManifestInvalid, match=r"no vocab\.json"):
        load_vocab(str(folder))


def test_words_begin_with_white_space() -> None:
    vocab = vocabulary()
    starts = dict(zip(vocab.tokens, vocab.family.starts_word(vocab).tolist(), strict=True))
    assert [t for t in ("<s>", "[unused0]", "Ġ", "ĠĠ", "Ġwor", "Ċ", "hell", "!", "'s") if starts[t]] == [
        "<s>", "[unused0]", "Ġ", "ĠĠ", "Ġwor", "Ċ"
    ]  # fmt: skip


def test_tokens_as_text() -> None:
    assert [ByteBpe(()).text_of(token) for token in ("Ġthe", "æĿ±", "æĿ", "<mask>", "東")] == [
        " the",
        "東",
        "æĿ",
        "<mask>",
        "東",
    ]


def table(words: dict[str, int]) -> pa.Table:
    return pa.table([sorted(words), [words[w] for w in sorted(words)]], COUNTS)


def full_of_ties(n: int = 3000) -> pa.Table:
    rng = random.Random(3)
    letters = " abcdefghijklmnopqrstuvwxyzäöüß東京\n"
    return table({"".join(rng.choices(letters, k=rng.randint(2, 9))): rng.randint(2, 4) for _ in range(n)})


def learned_by_the_library(texts: list[str], size: int) -> list[tuple[str, str]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]


def test_the_same_in_every_run_and_for_any_order() -> None:
    counts = full_of_ties()
    digests = {learn(counts, sections.Vocab(size=1024, unused=0)).vocab.digest for _ in range(4)}
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(counts))
        digests.add(learn(counts.take(order), sections.Vocab(size=1024, unused=0)).vocab.digest)
    assert len(digests) == 1


def test_the_library_learns_the_same_from_the_text_directly() -> None:
    rng = random.Random(5)
    words = ["it's", "we'll", "naïve", "東京", "12", "...", "the", "lowest", "newer", "\n", "\t"]
    texts = [" ".join(rng.choices(words, k=30)) + "\n" for _ in range(50)]
    vocab = learn(count_words(pa.array(texts), GPT2), sections.Vocab(size=320, unused=3)).vocab
    assert list(vocab.family.merges) == learned_by_the_library(texts, 320 - 5 - 3)


def test_size_and_slots() -> None:
    vocab = learn(full_of_ties(), sections.Vocab(size=1024, unused=39)).vocab
    assert (vocab.size, len(vocab.unused)) == (1024, 39)
    assert vocab.tokens[1024 - 40 :][:2] == ("<mask>", "[unused0]")
    assert learn(full_of_ties(), sections.Vocab(size=1000, allow_any_size=True, unused=0)).vocab.size == 1000
    with pytest.raises(RecipeInvalid, match="30,464 or 30,528"):
        learn(full_of_ties(), sections.Vocab(size=30_522, unused=0))
    with pytest.raises(RecipeInvalid, match="less than the 361"):
        learn(full_of_ties(), sections.Vocab(size=320, unused=100))


def test_a_small_corpus_is_filled_with_slots() -> None:
    learned = learn(table({" the": 10, " cat": 4}), sections.Vocab(size=320, unused=0))
    assert {"Ġthe", "Ġcat"} <= set(learned.vocab.tokens)
    assert learned.statistics["merges"] == 6
    assert len(learned.vocab.unused) == 320 - 261 - 6
    assert len(learn(COUNTS.empty_table(), sections.Vocab(size=320, unused=0)).vocab.unused) == 320 - 261


def test_very_long_words_are_not_learned_from() -> None:
    learned = learn(table({" the": 10, "-" * 2000: 4}), sections.Vocab(size=320, unused=0))
    assert learned.statistics["words_too_long"] == 1
    assert "--" not in learned.vocab.tokens


def test_scaled_counts_learn_the_same_for_any_order() -> None:
    counts = full_of_ties()
    learned = learn(counts, sections.Vocab(size=1024, unused=0), fed=2000)
    assert learned.statistics["words_scaled_away"] > 0
    order = np.random.default_rng(0).permutation(len(counts))
    assert learn(counts.take(order), sections.Vocab(size=1024, unused=0), fed=2000).vocab == learned.vocab


def test_pair_counts_stay_within_31_bits() -> None:
    assert 5 <= byte_bpe._bound(table({"ab": 5}), 1000) <= 1000
    assert byte_bpe._bound(table({"a" * 1000: 2**40, "b": 1}), 2**40) <= 2**30 / 1000 + 1


def test_the_recipe_decides_the_family() -> None:
    section = sections.Vocab(model="bpe", size=320, unused=3)
    assert families.segmentation_of(section) == GPT2
    counts = count_words(pa.array(["the lowest newer "] * 9), families.segmentation_of(section))
    assert families.learn(counts, section).vocab == learn(counts, sections.Vocab(size=320, unused=3)).vocab
