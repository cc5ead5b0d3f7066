"""Every family of vocabulary and model: words, pairs and windows are those of its own tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from corpusforge.evaluate.finetune import Classifier, encode, scores
from corpusforge.evaluate.likelihood import OnePosition, load_tokenizer, pseudo_log_likelihoods, tokenize
from corpusforge.evaluate.squad_data import Questions, split_windows
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_folder import export, load_model
from corpusforge.trainer.model import Encoder, initialize
from tests.oracles import pseudo_likelihood
from tests.tokens.small_vocabularies import made_up_text, of_family

transformers = pytest.importorskip("transformers")

VOCABULARIES = {"bert": "wordpiece", "roberta": "bpe", "albert": "unigram"}


def checkpoint(folder: Path, family: str) -> Path:
    vocab = of_family(VOCABULARIES[family])
    ids, is_albert = vocab.specials, family == "albert"
    shape = Architecture(
        family, 2, 32, 2, 64, vocab.size, 128, 1 if family == "roberta" else 2, 1e-5, 0.1, ids.pad, family != "roberta",
        embedding=16 if is_albert else 0, activation="gelu_new" if is_albert else "gelu", is_shared=is_albert,
    )  # fmt: skip
    (folder / "vocabulary").mkdir(parents=True)
    for name, content in vocab.save_files().items():
        (folder / "vocabulary" / name).write_bytes(content)
    model = Encoder(shape)
    initialize(model, 3, deviation=0.3)
    (folder / "model").mkdir()
    named = {"cls": ids.cls, "sep": ids.sep}
    export(model, folder / "model", vocab_folder=str(folder / "vocabulary"), ids=named, card={})
    return folder / "model"


@pytest.mark.slow
@pytest.mark.parametrize("family", VOCABULARIES)
def test_words_pairs_and_windows_are_the_tokenizers(tmp_path: Path, family: str) -> None:
    folder = checkpoint(tmp_path, family)
    model, mine = load_model(folder), load_tokenizer(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    rows, at = torch.randint(5, 200, (6, 9)), torch.tensor([1, 4, 7, 2, 5, 0])
    with torch.no_grad():
        whole_rows = model.encode(rows, torch.zeros_like(rows), None)
        assert torch.allclose(OnePosition(model)(rows, at), whole_rows[torch.arange(6), at], atol=1e-5)
    assert model.shape.layers == 2
    texts = [text.rstrip(".").split() for text in made_up_text().to_pylist()[:6]]
    sentences = [" ".join(words[:5]) + ("." if n % 2 else "") for n, words in enumerate(texts)]
    masked = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokens = tokenize(folder, sentences, 64)
    found = pseudo_log_likelihoods(model, tokens, theirs.mask_token_id, batch_tokens=512, device=torch.device("cpu"))
    for form, values in found.items():
        expected = [pseudo_likelihood.score(masked, theirs, sentence, form) for sentence in sentences]
        assert np.allclose(values, expected, atol=1e-3), form
    assert not np.allclose(found["original"], found["word_l2r"], atol=1e-3)

    firsts, seconds = sentences[:3], sentences[3:]
    pairs, asked = encode(mine, [firsts, seconds], 24), theirs(firsts, seconds, truncation=True, max_length=24)
    assert [part.tolist() for part in np.split(pairs.ids, pairs.offsets[1:-1])] == asked["input_ids"]
    for rows, said in scores(Classifier(model, 2), pairs, 512):
        assert torch.isfinite(said).all()
        assert len(rows) == len(said)

    whole = " ".join(texts[0])
    answer = " ".join(texts[0][30:32])
    questions = Questions([whole], np.array([0]), [firsts[1]], [[answer]], np.array([whole.index(answer)]))
    windows = split_windows(load_tokenizer(folder), questions, theirs.cls_token_id, theirs.sep_token_id, 100)
    assert windows.inputs.ids[: windows.front[0]].tolist() == theirs(firsts[1], whole)["input_ids"][: windows.front[0]]
    holding = np.flatnonzero(windows.targets.sum(1))
    assert len(holding)
    for window in holding:
        first, last = windows.targets[window] - windows.front[window] + windows.offsets[window]
        assert answer in whole[windows.begins[first] : windows.ends[last]]
