"""Runs that start from a checkpoint of transformers: its weights to the bit, its output, and clear errors."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from corpusforge import errors
from corpusforge.sections import Pretrain
from corpusforge.tokens.families import load_vocab
from corpusforge.trainer import checkpoint
from corpusforge.trainer.hf_folder import load_model
from corpusforge.trainer.init_checkpoint import fill
from corpusforge.trainer.model import Encoder, initialize
from corpusforge.trainer.prepare import prepare
from tests.made_up_instances import Data
from tests.trainer.training_runs import RecordedProgress, assert_equal_runs, stop_at, train

transformers = pytest.importorskip("transformers")

pytest_plugins = ["tests.made_up_data"]

MakeData = Callable[..., Data]
PRESETS = {"bert": "bert-tiny", "roberta": "roberta-tiny", "albert": "albert-tiny"}
BODY = {"BertModel": "bert", "RobertaModel": "roberta", "AlbertModel": "albert"}


def their_model(data: Data, folder: Path, name: str, **changes: Any) -> Any:
    """A model that transformers made, with the vocabulary of the data beside it."""
    kind = getattr(transformers, name)
    family = kind.config_class.model_type
    ids = load_vocab(data.vocabulary).specials
    width = 256 if family == "albert" else 128
    values = {
        "vocab_size": 192,
        "hidden_size": width,
        "num_hidden_layers": 2,
        "num_attention_heads": width // 64,
        "intermediate_size": 4 * width,
        "max_position_embeddings": 64 if family != "roberta" else 65 + ids.pad,
        "type_vocab_size": 1 if family == "roberta" else 2,
        "pad_token_id": ids.pad,
        "initializer_range": 0.2,
        "layer_norm_eps": 1e-5,
    }
    torch.manual_seed(5)
    model = kind(kind.config_class(**(values | changes))).eval()
    model.save_pretrained(folder)
    for path in Path(data.vocabulary).iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return model


def begun(data: Data, run: Pretrain, folder: Path, **changes: Any) -> tuple[Encoder, str]:
    family = json.loads((folder / "config.json").read_text())["model_type"]
    changes = {"preset": PRESETS[family], "init": str(folder), "dropout": 0.0} | changes
    job = prepare(data.instances, dataclasses.replace(run, **changes), vocab_folder=data.vocabulary)
    model = Encoder(job.shape)
    initialize(model, 0)
    assert job.init is not None
    return model.eval(), str(fill(model, job.init))


@pytest.mark.parametrize(
    ("name", "pairs", "anew", "left"),
    [
        ("BertForPreTraining", True, "nothing", "nothing"),
        ("BertForPreTraining", False, "nothing", "bert.pooler.dense, cls.seq_relationship"),
        ("BertForMaskedLM", True, "pooler, pair head", "nothing"),
        ("BertModel", True, "MLM head, pair head", "nothing"),
        ("RobertaForMaskedLM", False, "nothing", "nothing"),
        ("RobertaModel", False, "MLM head", "roberta.pooler.dense"),
        ("AlbertForPreTraining", True, "nothing", "nothing"),
        ("AlbertForMaskedLM", True, "pooler, pair head", "nothing"),
        ("AlbertModel", False, "MLM head", "albert.pooler"),
    ],
)
def test_what_it_computed_is_what_the_run_begins_with(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, name: str, pairs: bool, anew: str, left: str
) -> None:
    data, folder = make_data(pairs=pairs), tmp_path / "theirs"
    theirs = their_model(data, folder, name)
    model, told = begun(data, small_run, folder)
    assert told == f"initialized: {anew}; left out: {left}"
    ids = torch.randint(10, 192, (3, 20), generator=torch.Generator().manual_seed(0))
    segments = torch.zeros_like(ids)
    body = theirs if name in BODY else getattr(theirs, theirs.base_model_prefix)
    with torch.no_grad():
        hidden = model.encode(ids, segments, None)
        assert (hidden - body(ids, token_type_ids=segments).last_hidden_state).abs().max() < 1e-5 * hidden.abs().max()
        if "MLM" not in anew:
            out = theirs(ids, token_type_ids=segments)
            logits = out.prediction_logits if "PreTraining" in name else out.logits
            mine = model.predict(hidden)
            assert (mine - logits).abs().max() < 1e-5 * max(1.0, float(mine.abs().max()))


def test_old_names_pickles_and_half_precision(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    """google's own checkpoints: gamma and beta, a copy of the tied decoder, a table of positions, in a pickle."""
    data, folder = make_data(), tmp_path / "theirs"
    their_model(data, folder, "BertForMaskedLM")
    plain, _ = begun(data, small_run, folder)
    stored = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): w
        for n, w in stored.items()
    }
    old["cls.predictions.decoder.weight"] = old["bert.embeddings.word_embeddings.weight"].clone()
    old["cls.predictions.decoder.bias"] = old.pop("cls.predictions.bias")
    old["bert.embeddings.position_ids"] = torch.arange(64)[None]
    torch.save(old, folder / "pytorch_model.bin")
    model, told = begun(data, small_run, folder)
    assert told == "initialized: nothing; left out: nothing"
    assert all(torch.equal(weight, plain.state_dict()[name]) for name, weight in model.state_dict().items())
    torch.save(
        {name: w.half() if w.is_floating_point() else w for name, w in old.items()}, folder / "pytorch_model.bin"
    )
    model, _ = begun(data, small_run, folder)
    assert all(weight.dtype == torch.float32 for weight in model.parameters())
    torch.save(old, folder / "pytorch_model.bin")
    loaded = load_model(folder).state_dict()  # as evaluate reads it
    assert all(torch.equal(weight, plain.state_dict()[name]) for name, weight in loaded.items())
    old["cls.predictions.decoder.weight"] += 1
    torch.save(old, folder / "pytorch_model.bin")
    with pytest.raises(errors.StageMismatch, match="not tied"):
        begun(data, small_run, folder)


class Wicked:
    """A pickle that would write a file if it were opened."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("opened"),)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_pickle_that_does_more_is_not_opened(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, folder = make_data(), tmp_path / "theirs"
    their_model(data, folder, "BertForMaskedLM")
    (folder / "model.safetensors").unlink()
    monkeypatch.chdir(tmp_path)
    for content in (torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))):
        content({"weight": Wicked()}, folder / "pytorch_model.bin")
        with pytest.raises(errors.ManifestInvalid, match="unreadable weights"):
            begun(data, small_run, folder)
        assert not (tmp_path / "opened").exists()


def test_weights_in_shards(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data, folder = make_data(), tmp_path / "theirs"
    theirs = their_model(data, folder, "BertForMaskedLM")
    plain, _ = begun(data, small_run, folder)
    (folder / "model.safetensors").unlink()
    theirs.save_pretrained(folder, max_shard_size="500KB")
    assert len(list(folder.glob("model-*-of-*.safetensors"))) > 1
    model, told = begun(data, small_run, folder)
    assert told == "initialized: nothing; left out: nothing"
    assert all(torch.equal(weight, plain.state_dict()[name]) for name, weight in model.state_dict().items())


def test_rows_that_padding_added_to_the_vocabulary_are_drawn_anew(
    make_data: MakeData, small_run: Pretrain, tmp_path: Path
) -> None:
    data, folder = make_data(), tmp_path / "theirs"
    theirs = their_model(data, folder, "BertForMaskedLM", vocab_size=180)
    vocab = load_vocab(data.vocabulary)
    fewer = dataclasses.replace(vocab, tokens=vocab.tokens[:180])
    for name, content in fewer.save_files().items():
        (folder / name).write_bytes(content)
    padded = tmp_path / "padded"
    padded.mkdir()
    for name, content in fewer.padded(192).save_files().items():
        (padded / name).write_bytes(content)
    data = Data(data.instances, str(padded))
    model, told = begun(data, small_run, folder)
    assert told.startswith("initialized: 12 rows of the vocabulary;")
    assert torch.equal(model.tokens.weight[:180], theirs.bert.embeddings.word_embeddings.weight)
    assert 0 < model.tokens.weight[180:].abs().max() < 0.05


@pytest.mark.slow
def test_a_run_goes_on_from_it_and_says_so(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data, folder = make_data(pairs=True), tmp_path / "theirs"
    their_model(data, folder, "BertForMaskedLM", initializer_range=0.02)
    run = dataclasses.replace(small_run, init=str(folder))
    recorded = RecordedProgress()
    train(data, tmp_path / "straight", run, progress=recorded)
    assert any("initialized: pooler, pair head" in line for line in recorded.lines)
    stop_at(data, tmp_path / "stopped", run, 3)
    train(data, tmp_path / "stopped", run, resume=True)
    assert_equal_runs(tmp_path / "straight", tmp_path / "stopped")
    card = (tmp_path / "stopped/model/README.md").read_text()
    assert "started from | theirs, weights" in card
    assert str(tmp_path) not in card
    state = json.loads((checkpoint.all_folders(tmp_path / "stopped")[0] / "state.json").read_text())
    assert len(state["initial"]["digest"]) == 32
    again = dataclasses.replace(small_run, init=str(tmp_path / "straight"))  # and from a run of ours
    assert train(data, tmp_path / "again", again, progress=recorded)["steps"] == 10
    assert "left out: nothing" in recorded.lines[-1] or any("initialized: nothing" in line for line in recorded.lines)


def test_what_does_not_fit_is_one_line(make_data: MakeData, small_run: Pretrain, tmp_path: Path) -> None:
    data, folder = make_data(), tmp_path / "theirs"
    their_model(data, folder, "BertForMaskedLM")

    def refused(match: str, kind: type[Exception] = errors.StageMismatch, **changes: Any) -> None:
        with pytest.raises(kind, match=match) as caught:
            begun(data, small_run, folder, **changes)
        assert "\n" not in str(caught.value)

    refused("width 128 .the preset: 256..*--init-shape", preset="bert-mini")
    begun(data, small_run, folder, preset="bert-mini", init_shape=True)
    refused("it is a bert, and the preset a roberta", preset="roberta-tiny")
    refused("no such folder.*nothing is downloaded", errors.InputMissing, init=str(tmp_path / "nothing"))
    refused("no config.json", errors.InputMissing, init=str(tmp_path))
    vocab = load_vocab(data.vocabulary)
    other = dataclasses.replace(vocab, tokens=(*vocab.tokens[:-1], "other"))
    for name, content in other.save_files().items():
        (folder / name).write_bytes(content)
    refused("is not the vocabulary of the data.*--init-any-vocabulary")
    begun(data, small_run, folder, init_any_vocabulary=True)
    changed = {"init_any_vocabulary": True}
    their_model(data, folder, "BertForMaskedLM", vocab_size=256)
    refused("256 rows, and the vocabulary 192", **changed)
    their_model(data, folder, "BertForMaskedLM", max_position_embeddings=40)
    refused("40 positions, and rows of the data up to 48")
    their_model(data, folder, "BertForMaskedLM", hidden_act="relu")
    refused("config.json")
    their_model(data, folder, "RobertaForMaskedLM", pad_token_id=1)
    refused("padding id is 1")
    their_model(data, folder, "BertForMaskedLM")
    stored = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.1.output.dense.weight"
    save_file({n: w for n, w in stored.items() if n != name}, folder / "model.safetensors")
    refused(f"no weight {name}", errors.ManifestInvalid)
    (folder / "model.safetensors").unlink()
    refused("no model.safetensors and no pytorch_model.bin", errors.InputMissing)
