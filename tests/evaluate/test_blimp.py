"""BLiMP scores: pseudo-log-likelihoods against transformers, ties, reading of the files."""

from __future__ import annotations

import io
import json
import math
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_up_instances import write_vocabulary

from corpusforge import errors
from corpusforge.evaluate.blimp import Pair, blimp, pseudo_log_likelihoods, read_pairs, tokenize
from corpusforge.evaluate.run import evaluate, table
from corpusforge.trainer.export import export
from corpusforge.trainer.model import Architecture, Encoder, initialise

CPU = torch.device("cpu")
MASK = 4


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    specials = write_vocabulary(tmp_path / "vocabulary")
    model = Encoder(Architecture("bert", 2, 32, 2, 64, specials.size, 64, 2, 1e-12, 0.1, specials.pad, False))
    initialise(model, 3, deviation=0.3)
    folder = tmp_path / "model"
    folder.mkdir()
    ids = {"cls": specials.cls, "sep": specials.sep}
    export(model, folder, vocab_folder=str(tmp_path / "vocabulary"), ids=ids, card={})
    return folder


def load(folder: Path) -> Encoder:
    from corpusforge.trainer.export import load_model

    return load_model(folder)


SENTENCES = ["w1 w2 w3", "w9", "w5 w5 w5 w5 w5 w5 w5", "w100 w20 w3", "", "W1 w2 w3", "w7 w8"]


@pytest.mark.parametrize("budget", [64, 10_000])
def test_pseudo_log_likelihood_is_the_plain_loop_over_transformers(model_folder: Path, budget: int) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(model_folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    expected = []
    for sentence in SENTENCES:
        ids, total = tokenizer(sentence, return_tensors="pt")["input_ids"], 0.0
        for at in range(1, ids.shape[1] - 1):
            changed = ids.clone()
            changed[0, at] = tokenizer.mask_token_id
            with torch.no_grad():
                total += float(theirs(changed).logits[0, at].log_softmax(-1)[ids[0, at]])
        expected.append(total)
    tokens = tokenize(model_folder, SENTENCES, 64)
    assert tokens == [tokenizer(s)["input_ids"] for s in SENTENCES]
    mine = pseudo_log_likelihoods(load(model_folder), tokens, MASK, batch_tokens=budget, device=CPU)
    assert np.allclose(mine, expected, atol=1e-4)
    assert mine[4] == 0.0
    assert mine[0] == mine[5]  # the same ids: exactly the same score


def test_ties_count_half_and_paradigms_count_alike(model_folder: Path) -> None:
    scores = pseudo_log_likelihoods(
        load(model_folder), tokenize(model_folder, ["w1 w2 w3", "w9 w4"], 64), MASK, batch_tokens=99, device=CPU
    )
    better, worse = ("w1 w2 w3", "w9 w4") if scores[0] > scores[1] else ("w9 w4", "w1 w2 w3")
    pairs = [
        Pair(better, worse, "a", "x"),
        Pair(better, worse, "a", "x"),
        Pair(worse, better, "a", "x"),
        Pair("w1 w2 w3", "W1 w2 w3", "b", "x"),  # a tie for an uncased vocabulary
        Pair(better, worse, "c", "y"),
    ]
    found = blimp(load(model_folder), model_folder, MASK, pairs, batch_tokens=999, device=CPU)
    assert found["paradigms"] == {"a": pytest.approx(2 / 3), "b": 0.5, "c": 1.0}
    assert found["accuracy"] == pytest.approx((2 / 3 + 0.5 + 1.0) / 3)
    assert found["phenomena"] == {"x": pytest.approx((2 / 3 + 0.5) / 2), "y": 1.0}


def lines(uid: str, count: int) -> bytes:
    rows: list[dict[str, Any]] = [
        {"sentence_good": f"w{k} w2", "sentence_bad": f"w{k} w3", "UID": uid, "linguistics_term": f"{uid}-term"}
        for k in range(count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_reads_folders_and_archives_alike(tmp_path: Path) -> None:
    folder, archive = tmp_path / "data", tmp_path / "data.tar.gz"
    folder.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        for uid in ("two", "one"):
            (folder / f"{uid}.jsonl").write_bytes(lines(uid, 5))
            member = tarfile.TarInfo(f"data/{uid}.jsonl")
            member.size = len(lines(uid, 5))
            tar.addfile(member, io.BytesIO(lines(uid, 5)))
    assert read_pairs(str(folder), 0) == read_pairs(str(archive), 0)
    assert len(read_pairs(str(folder), 0)) == 10
    assert [p.paradigm for p in read_pairs(str(archive), 2)] == ["one", "one", "two", "two"]


def test_bad_files_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(errors.InputMissing):
        read_pairs(str(tmp_path / "nothing"), 0)
    with pytest.raises(errors.InputMissing):
        read_pairs(str(tmp_path), 0)
    (tmp_path / "bad.jsonl").write_text('{"sentence_good": "a"}\n')
    with pytest.raises(errors.InputUnreadable, match="line 1"):
        read_pairs(str(tmp_path), 0)
    (tmp_path / "bad.tar.gz").write_bytes(b"no archive")
    with pytest.raises(errors.InputUnreadable):
        read_pairs(str(tmp_path / "bad.tar.gz"), 0)


def test_real_blimp_reads_whole(shared_data: Path) -> None:
    pairs = read_pairs(str(shared_data / "eval/blimp-data.tar.gz"), 0)
    paradigms = {p.paradigm for p in pairs}
    assert (len(pairs), len(paradigms)) == (67_000, 67)
    assert len({p.phenomenon for p in pairs}) in (12, 13)


def test_an_untrained_model_is_near_chance_on_real_pairs(shared_data: Path, model_folder: Path) -> None:
    archive = str(shared_data / "eval/blimp-data.tar.gz")
    found = evaluate(str(model_folder.parent), ["blimp"], blimp_data=archive, blimp_pairs=1)
    assert found["tasks"]["blimp"]["pairs"] == 67
    # Every word is unknown to this vocabulary: pairs of equal length tie.
    assert 0.2 < found["tasks"]["blimp"]["accuracy"] < 0.8
    assert "accuracy" in table(found)
    assert math.isfinite(found["tasks"]["blimp"]["accuracy"])
