"""The command: its plan writes nothing, its model has a card, and errors are one line."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from corpusforge import errors
from corpusforge.cli import cli
from corpusforge.shards import Manifest
from corpusforge.stages.output_folder import digest_of
from corpusforge.trainer import checkpoint
from tests.made_up_instances import Data

pytest_plugins = ["tests.made_up_data"]

QUICK = ["--preset", "bert-tiny", "--steps", "4", "--batch-tokens", "320", "--learning-rate", "1e-3"]
QUICK += ["--evaluate-steps", "2", "--log-steps", "1", "--device", "cpu", "--quiet"]


@pytest.fixture
def instances(make_data: Callable[..., Data]) -> Callable[[str], Path]:
    """Folders of made-up instances as build-instances leaves them."""

    def make(name: str) -> Path:
        data = make_data(name=name, pairs=name == "pairs")
        folder = Path(data.instances)
        shutil.copytree(data.vocabulary, folder / "vocab")
        manifest = Manifest.load(str(folder))
        settings = {"instances": {"length": 48, "masking": "dynamic"}, "seed": 0}
        dataclasses.replace(manifest, recipe=settings, content={"train": f"of {name}"}).save(str(folder))
        return folder

    return make


def run(data: Path, output: Path, *more: str) -> str:
    done = CliRunner().invoke(cli, ["pretrain", str(data), "--output", str(output), *QUICK, *more])
    if isinstance(done.exception, errors.CorpusForgeError):
        raise done.exception
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def test_a_plan_says_what_a_run_costs_and_writes_nothing(instances: Callable[[str], Path], tmp_path: Path) -> None:
    data = instances("data")
    before = sorted(tmp_path.rglob("*"))
    shown = run(data, tmp_path / "out", "--dry-run")
    for part in ("Training plan", "parameters", "memory", "attention", "Differences from bert-tiny as published"):
        assert part in shown
    assert "steps 4 (paper: 1,000,000)" in shown
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_leaves_a_model_with_its_card_and_is_done(instances: Callable[[str], Path], tmp_path: Path) -> None:
    data, out = instances("data"), tmp_path / "out"
    run(data, out)
    card = (out / "model/README.md").read_text()
    assert "\n# out\n" in card
    assert f"`{digest_of({'train': 'of data'})}`" in card
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    last = [line for line in log if "mlm_loss" in line][-1]
    assert f"| MLM loss | {last['mlm_loss']:.4f} |" in card
    assert f"| entropy of the training words (unigram) | {last['unigram']:.4f} |" in card
    assert f"| held-out MLM loss | {log[-1]['heldout_loss']:.4f} |" in card
    assert f"| the same tokens by word frequencies alone (unigram) | {log[-1]['heldout_unigram']:.4f} |" in card
    assert list(log[-1])[:3] == ["step", "heldout_loss", "heldout_unigram"]
    assert Manifest.load(str(out)).statistics["heldout_unigram"] == log[-1]["heldout_unigram"]
    settings = tomllib.loads(card.split("```toml\n")[1].split("```")[0])
    assert settings["instances"] == {"length": 48, "masking": "dynamic"}
    assert (settings["pretrain"]["preset"], settings["pretrain"]["steps"]) == ("bert-tiny", 4)
    assert str(tmp_path) not in card
    newest = checkpoint.all_folders(out)[0]
    assert (newest / "README.md").read_text() == card
    assert "up to date" in run(data, out)


def test_every_checkpoint_opens_in_transformers(instances: Callable[[str], Path], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    run(instances("pairs"), tmp_path / "out", "--checkpoint-steps", "2")
    folders = checkpoint.all_folders(tmp_path / "out")
    assert [folder.name for folder in folders] == ["step-000004", "step-000002"]
    for folder in (*folders, tmp_path / "out/model"):
        _, settings = transformers.BertForPreTraining.from_pretrained(folder, output_loading_info=True)
        assert not any(settings[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
        assert len(transformers.AutoTokenizer.from_pretrained(folder)) == 192


def test_what_is_refused_is_one_line(instances: Callable[[str], Path], tmp_path: Path) -> None:
    data, other, out = instances("data"), instances("other"), tmp_path / "out"
    run(data, out)

    def refused(kind: type[Exception], match: str, *words: str, folder: Path = data) -> None:
        with pytest.raises(kind, match=match) as caught:
            run(folder, out, *words)
        assert "\n" not in str(caught.value)

    refused(errors.ManifestInvalid, "no such folder", folder=tmp_path / "nope")
    refused(errors.StageMismatch, "holds the output of pretrain", folder=out)
    refused(errors.OutputTaken, "--overwrite", "--learning-rate", "1e-2")
    refused(errors.OutputTaken, f"4 -> 6.*another folder \\(with --init {out}/model it trains", "--steps", "6")
    refused(errors.OutputTaken, "--overwrite", folder=other)
    refused(errors.RecipeInvalid, "did you mean 'bert-tiny'", "--preset", "bert-tinny")
    assert Manifest.load(str(out)).stage == "pretrain"  # untouched
    (out / "manifest.json").unlink()
    shutil.rmtree(checkpoint.all_folders(out)[0] / "..", ignore_errors=True)
    run(other, out, "--allow-new-data")
    state = json.loads((checkpoint.all_folders(out)[0] / "state.json").read_text())
    assert state["fingerprint"] == digest_of({"train": "of other"})
