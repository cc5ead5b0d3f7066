"""A model written by `export` is the same in transformers: every key, every logit, and masks filled by its pipeline."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from safetensors import safe_open

from corpusforge import errors
from corpusforge.sections import Vocab as Section
from corpusforge.tokens.counts import count_words, pack_counts
from corpusforge.tokens.families import learn, segmentation_of, select
from corpusforge.tokens.vocab import Vocab
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_folder import TOKENIZER_FILES, export, load_model
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.model_card import model_card
from tests.made_up_instances import write_vocabulary

transformers = pytest.importorskip("transformers")

CASES = {
    "BertForPreTraining": ("bert", True, 0),
    "BertForMaskedLM": ("bert", False, 0),
    "RobertaForMaskedLM": ("roberta", False, 0),
    "AlbertForPreTraining": ("albert", True, 0),
    "AlbertForMaskedLM": ("albert", False, 0),
}


def make(family: str, pairs: bool, padding_id: int) -> Encoder:
    positions = 64 + padding_id + 1 if family == "roberta" else 64
    segments = 1 if family == "roberta" else 2
    shape = Architecture(family, 2, 32, 2, 64, 192, positions, segments, 1e-12, 0.1, padding_id, pairs)
    if family == "albert":
        shape = dataclasses.replace(shape, embedding=16, activation="gelu_new", is_shared=True, layers=3)
    model = Encoder(shape)
    initialize(model, 3, deviation=0.3)  # wide, so that a wrong weight shows
    with torch.no_grad():
        for number, (_, weight) in enumerate(model.named_parameters()):
            if weight.dim() == 1:
                weight += torch.linspace(-0.2, 0.3, weight.numel()) * (1 + number % 3)
    return model.eval()


def some_batch(padding_id: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(10, 192, (5, 24), generator=generator)
    lengths = torch.tensor([24, 3, 17, 9, 24])
    is_real = torch.arange(24) < lengths[:, None]
    ids[~is_real] = padding_id
    segments = ((torch.arange(24) >= lengths[:, None] // 2) & is_real).long()
    return ids, segments, is_real


def written(tmp_path: Path, family: str, pairs: bool, padding_id: int) -> tuple[Encoder, Path]:
    specials = write_vocabulary(tmp_path / "vocabulary")
    model, folder = make(family, pairs, padding_id), tmp_path / "model"
    folder.mkdir()
    ids = {"cls": specials.cls, "sep": specials.sep}
    export(model, folder, vocab_folder=str(tmp_path / "vocabulary"), ids=ids, card={"name": "A test"})
    return model, folder


@pytest.mark.parametrize("padding_id", [0, 1, 7])
@pytest.mark.parametrize("name", CASES)
def test_logits_and_keys_equal_transformers(tmp_path: Path, name: str, padding_id: int) -> None:
    family, pairs, _ = CASES[name]
    model, folder = written(tmp_path, family, pairs, padding_id)
    theirs, told = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert {key: sorted(told[key]) for key in ("missing_keys", "unexpected_keys", "mismatched_keys")} == {
        "missing_keys": [],
        "unexpected_keys": [],
        "mismatched_keys": [],
    }
    ids, segments, is_real = some_batch(padding_id)
    if family == "roberta":
        segments = torch.zeros_like(segments)
    masked = torch.nonzero(is_real.flatten()).flatten()
    with torch.no_grad():
        mine, pair, _ = model(ids, segments, is_real, masked)
        out = theirs.eval()(input_ids=ids, token_type_ids=segments, attention_mask=is_real.long())
    logits = out.prediction_logits if pairs else out.logits
    assert (mine - logits.flatten(0, 1)[masked]).abs().max() < 1e-5 * max(1.0, float(mine.abs().max()))
    assert (pair is not None) == pairs
    if pair is not None:
        theirs_pair = out.sop_logits if family == "albert" else out.seq_relationship_logits
        assert torch.allclose(pair, theirs_pair, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_opens_by_the_auto_classes(tmp_path: Path, name: str) -> None:
    _, folder = written(tmp_path, *CASES[name])
    masked, told = transformers.AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not told["missing_keys"]
    bare, told = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
    # A bare model has a pooler, which nothing trains without pairs.
    assert all("pooler" in key for key in told["missing_keys"])
    assert not told["missing_keys"] or not name.endswith("ForPreTraining")
    assert masked.config.vocab_size == bare.config.vocab_size == 192
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("w3 w5")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["[CLS]", "w3", "w5", "[SEP]"]
    assert tokenizer.pad_token_id == masked.config.pad_token_id


@pytest.mark.parametrize("padding_id", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_the_tokenizer_fits_the_model(tmp_path: Path, name: str, padding_id: int) -> None:
    family, pairs, _ = CASES[name]
    model, folder = written(tmp_path, family, pairs, padding_id)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    theirs = getattr(transformers, name).from_pretrained(folder).eval()
    assert tokenizer.model_max_length == model.shape.positions - model.shape.first_position == 64
    inputs = tokenizer("w3", "w5", return_tensors="pt")
    assert ("token_type_ids" in inputs) == (family != "roberta")
    theirs(**inputs)
    theirs(**tokenizer("w3 " * 100, truncation=True, return_tensors="pt"))  # as many as fit, and no fewer
    with pytest.raises((IndexError, RuntimeError)):
        theirs(**tokenizer("w3 " * 63, return_tensors="pt"))


def test_weights_are_stored_once_and_for_torch(tmp_path: Path) -> None:
    _, folder = written(tmp_path, "bert", True, 0)
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
        names = set(file.keys())
    assert "cls.predictions.decoder.weight" not in names
    assert "cls.predictions.decoder.bias" not in names


@pytest.mark.parametrize("name", CASES)
def test_reads_back_bit_equal(tmp_path: Path, name: str) -> None:
    model, folder = written(tmp_path, *CASES[name])
    back = load_model(folder)
    assert back.shape == model.shape
    for key, weight in model.state_dict().items():
        assert torch.equal(weight, back.state_dict()[key]), key


def test_a_damaged_model_is_one_clear_error(tmp_path: Path) -> None:
    _, folder = written(tmp_path, "bert", False, 0)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(errors.ManifestInvalid):
        load_model(folder)
    (folder / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(errors.StageMismatch):
        load_model(folder)
    with pytest.raises(errors.InputMissing):
        load_model(tmp_path / "nothing")


def test_the_card_has_what_the_hub_reads_and_a_snippet() -> None:
    yaml = pytest.importorskip("yaml")
    model = make("roberta", False, 1)
    text = model_card(model, {"name": "A test", "settings": {"clean": {"language": "en"}}})
    head = yaml.safe_load(text.split("---")[1])
    assert head == {
        "library_name": "transformers",
        "pipeline_tag": "fill-mask",
        "tags": ["fill-mask", "corpusforge"],
        "language": "en",
    }
    assert "language" not in yaml.safe_load(model_card(model, {}).split("---")[1])
    compile(text.split("```python")[1].split("```")[0], "card", "exec")
    assert f"at most {model.shape.longest} tokens." in text
    short = model_card(model, {"settings": {"instances": {"length": 16}}})
    assert f"at most {model.shape.longest} tokens, but was trained on 16 at most" in short


TEXT = ["the quick brown fox jumps over the lazy dog", "a b c d e f g h i j k l m n o p q r s t u v w x y z"]
VOCABULARIES = ("wordpiece", "bpe", "unigram", "sentencepiece-bpe")
MODELS = {  # embedding, activation, shared, spans
    "bert": ("bert", {}),
    "bert-pairs": ("bert", {"pairs": True}),
    "spanbert": ("bert", {"span_positions": 15}),
    "roberta": ("roberta", {}),
    "albert": ("albert", {"embedding": 16, "activation": "gelu_new", "is_shared": True, "pairs": True}),
}


@functools.lru_cache
def vocabulary(kind: str) -> Vocab:
    section = Section(model=kind, size=320, unused=0, allow_any_size=True)
    counted = count_words(pa.array(TEXT * 20), segmentation_of(section))
    return learn(select([block for _, block in pack_counts(counted, 1)], section)[0], section).vocab


def with_vocabulary(folder: Path, model: str, kind: str) -> Encoder:
    vocab, (family, changes) = vocabulary(kind), MODELS[model]
    for name, content in vocab.save_files().items():
        (folder / "vocabulary").mkdir(exist_ok=True)
        (folder / "vocabulary" / name).write_bytes(content)
    pad = vocab.specials.pad
    is_roberta = family == "roberta"
    more: dict[str, Any] = {"pairs": False} | changes
    shape = Architecture(
        *(
            family,
            2,
            32,
            2,
            64,
            vocab.size,
            40 + (pad + 1 if is_roberta else 0),
            1 if is_roberta else 2,
            1e-12,
            0.1,
            pad,
        ),
        **more,
    )
    made = Encoder(shape)
    initialize(made, 1, deviation=0.3)
    (folder / "model").mkdir()
    ids = {"cls": vocab.specials.cls, "sep": vocab.specials.sep}
    export(made, folder / "model", vocab_folder=str(folder / "vocabulary"), ids=ids, card={})
    return made.eval()


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("model", MODELS)
def test_masks_are_filled_as_by_us(tmp_path: Path, model: str, kind: str) -> None:
    ours = with_vocabulary(tmp_path, model, kind)
    assert {*vocabulary(kind).save_files()} <= {path.name for path in (tmp_path / "model").iterdir()}
    assert {*vocabulary(kind).save_files()} <= {*TOKENIZER_FILES}
    filler = transformers.pipeline("fill-mask", model=str(tmp_path / "model"))
    mask = filler.tokenizer.mask_token
    texts = [f"the quick {mask} fox jumps over the lazy dog", f"a {mask}"]
    found = filler(texts, top_k=3, batch_size=2)  # the second one padded
    for text, three in zip(texts, found, strict=True):
        ids = torch.tensor([filler.tokenizer(text)["input_ids"]])
        at = (ids[0] == vocabulary(kind).specials.mask).nonzero()[:, 0]
        with torch.no_grad():
            shares = ours(ids, torch.zeros_like(ids), None, at).masked.softmax(-1)[0]
        best = shares.topk(3)
        assert [one["token"] for one in three] == best.indices.tolist()
        assert torch.allclose(torch.tensor([one["score"] for one in three]), best.values, atol=1e-5)


def test_a_spanbert_comes_back_as_the_bert_it_is(tmp_path: Path) -> None:
    ours = with_vocabulary(tmp_path, "spanbert", "wordpiece")
    back = load_model(tmp_path / "model")
    assert back.boundary is None
    assert back.shape.span_positions == 0
    kept = back.state_dict()
    assert all(torch.equal(w, kept[name]) for name, w in ours.state_dict().items() if not name.startswith("boundary."))
