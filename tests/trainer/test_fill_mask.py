"""Every family of models beside every family of vocabularies: the folder fills masks in transformers as we would."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from corpusforge.sections import Vocab as Section
from corpusforge.tokens.counts import count_words, pack_counts
from corpusforge.tokens.families import learn, segmentation_of, select
from corpusforge.tokens.vocab import Vocab
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_folder import TOKENIZER_FILES, export, load_model
from corpusforge.trainer.model import Encoder, initialize

transformers = pytest.importorskip("transformers")

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


def written(folder: Path, model: str, kind: str) -> Encoder:
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
    ours = written(tmp_path, model, kind)
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
    ours = written(tmp_path, "spanbert", "wordpiece")
    back = load_model(tmp_path / "model")
    assert back.boundary is None
    assert back.shape.span_positions == 0
    kept = back.state_dict()
    assert all(torch.equal(w, kept[name]) for name, w in ours.state_dict().items() if not name.startswith("boundary."))
