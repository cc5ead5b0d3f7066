"""What inspect shows of each kind of path; corpus text cannot control the terminal."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from rich.console import Console

from corpusforge import errors, schemas, shards
from corpusforge.report.document_view import merge
from corpusforge.report.inspect import inspect
from tests.report.handmade_run import HOSTILE, document, write_stage


def shown(path: Path | str, *, color: bool = False, **options: object) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"), force_terminal=color)  # noqa: SIM115, PTH123
    console.print(*inspect(str(path), **options), sep="\n")  # type: ignore[arg-type]
    return console.export_text(styles=color)


def test_a_run_shows_funnel_and_stages(run_dir: Path) -> None:
    text = shown(run_dir)
    assert "deduplicated" in text and "25.0%" in text
    assert "build-instances" in text
    assert "heldout_loss" in text
    assert "286 MiB" in text and "381 MiB" in text  # of a stage, and in the log


def test_a_stage_shows_tables_tallies_and_recipe(run_dir: Path) -> None:
    for path in (run_dir / "clean", run_dir / "clean/manifest.json"):
        text = shown(path)
        assert "page:bad-words" in text
        assert "text_bytes_in" in text and "400" in text
        assert "a, b" in text


@pytest.mark.parametrize("table", ["documents", "rejects"])
def test_rows_of_shards_cannot_control_the_terminal(run_dir: Path, table: str) -> None:
    text = shown(run_dir / f"clean/{table}/part-00000-00000.parquet")
    assert "alert(1)" in text
    assert "\x1b" not in text and "\u202e" not in text
    assert "[U+202E]" in text and "␛[31m" in text


def test_rows_and_skip(run_dir: Path) -> None:
    text = shown(run_dir / "clean/rejects/part-00000-00000.parquet", rows=1, skip=1)
    assert "Menu" in text and "foul" not in text
    assert "rows 1 to 1 of 3" in text


def test_a_table_whose_first_shards_are_empty_shows_the_first_rows(run_dir: Path) -> None:
    folder = run_dir / "dedupe"
    (folder / "repeats/part-00000-00000.parquet").rename(folder / "repeats/part-00002-00000.parquet")
    for number in range(2):
        shards.ShardWriter(str(folder), f"repeats/part-{number:05d}-00000.parquet", schemas.REPEATS, "parquet").finish()
    text = shown(folder / "repeats")
    assert "3 shards" in text and "those before part-00002-00000.parquet have no rows" in text
    assert "The first line" in text and "rows 0 to 0 of 1" in text
    assert "no rows after the first 1" in shown(folder / "repeats", skip=1)
    (folder / "repeats/part-00002-00000.parquet").unlink()
    assert "no rows in 2 shards" in shown(folder / "repeats")


def test_a_kept_page_shows_each_line_with_its_reason(run_dir: Path) -> None:
    text = shown(run_dir / "clean", document="0" * 32)
    lines = [line.split(maxsplit=2) for line in text.splitlines() if line[:1].strip().isdigit()]
    assert [line[0] for line in lines] == ["1", "2", "3", "4", "5"]
    assert [line[1] for line in lines if ":" in line[1]] == ["line:few-words", "line:no-end-mark"]
    assert shown(run_dir / "clean/documents/part-00000-00000.parquet", document="0" * 32) == text


def test_a_dropped_page_shows_its_reason(run_dir: Path) -> None:
    text = shown(run_dir / "clean", document=f"{2:032x}")
    assert "the page was dropped: page:bad-words" in text
    assert "Of two lines." in text


def test_cuts_of_deduplication_are_shown(run_dir: Path) -> None:
    text = shown(run_dir / "dedupe", document=f"{1:032x}")
    assert "span:repeated: bytes 0 to 10" in text
    assert "no text is left" in text


def test_an_ambiguous_or_unknown_document_is_an_error(run_dir: Path) -> None:
    with pytest.raises(errors.InputMissing, match="have ids that begin so"):
        inspect(str(run_dir / "clean"), document="0")
    with pytest.raises(errors.InputMissing, match="no document has this id"):
        inspect(str(run_dir / "clean"), document="f")


def test_merge_restores_the_order_of_lines() -> None:
    text = "\n".join(f"line {k}" for k in range(30))
    gone = {1, 2, 7, 29}
    kept = "\n".join(line for k, line in enumerate(text.split("\n")) if k not in gone)
    rejected = [{"line": k, "text": f"line {k}", "reason": "line:x"} for k in gone]
    merged = merge(kept, rejected)
    assert [line for _, line, _ in merged] == text.split("\n")
    assert {k for k, _, reason in merged if reason} == gone


def test_an_instance_is_decoded_with_its_masks(run_dir: Path) -> None:
    shard = run_dir / "instances/train/part-00000-00000.arrow"
    text = shown(shard)
    assert "[CLS] the [MASK](river) runs [SEP]" in text
    assert "5 tokens (A 5, B 0), 1 masked" in text
    assert "\x1b[1;31m[MASK]" in shown(shard, color=True)


def test_dynamic_masks_are_drawn_as_the_loader_does(tmp_path: Path, run_dir: Path) -> None:
    schema = schemas.instances_schema(128, masks=False)
    row = {"input_ids": list(range(5, 105)), "segment_lengths": [40, 60], "pair_label": 1, "document": 7, "index": 0,
           "copy": 0, "length": 100}  # fmt: skip
    folder = run_dir / "instances"
    write_stage(folder, "build-instances", {"train": (schema, [row])}, kind="arrow")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["recipe"] = {"instances": {"mask_rate": 0.2}, "seed": 3}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    text = shown(folder / "train/part-00000-00000.arrow")
    assert "epoch 0" in text and "B is from another document" in text
    masked = int(text.split(" masked,")[0].split()[-1])
    assert 15 <= masked <= 25


def test_tokens_masked_together_are_joined(run_dir: Path) -> None:
    schema = schemas.instances_schema(128, masks=False, word_starts=True)
    ids = [2, *range(20, 50), 3]
    row = {"input_ids": ids, "segment_lengths": [32, 0], "pair_label": None, "document": 7, "index": 0, "copy": 0,
           "length": 32, "word_starts": [True, *[k % 3 == 1 for k in range(30)], True]}  # fmt: skip
    folder = run_dir / "instances"
    write_stage(folder, "build-instances", {"train": (schema, [row])}, kind="arrow")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["recipe"] = {"instances": {"mask_unit": "whole-word"}, "seed": 3}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    text = shown(folder / "train/part-00000-00000.arrow")
    assert "a dot joins tokens" in text
    # The first word is the end of a truncated one: it has one token here and is not joined to [CLS].
    tokens = "".join(text.split("masked together", 1)[1].split("\n    ")[1:]).split()
    assert [token.count("\u00b7") for token in tokens] == [0, 0, *[2] * 9, 1, 0]
    assert all(token.count("[MASK]") in (0, 2, 3) or "(" not in token for token in tokens[2:-2])


def test_a_vocabulary_shows_its_tokens(run_dir: Path) -> None:
    (run_dir / "vocab/manifest.json").unlink()
    text = shown(run_dir / "vocab")
    assert "river" in text and "[MASK]" in text and "lower-cased" in text


def checkpoint(folder: Path) -> Path:
    folder.mkdir()
    header = json.dumps(
        {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}}
    ).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(48))
    (folder / "config.json").write_text('{"hidden_size": 4}')
    state = {"step": 1200, "tokens": 34567, "fingerprint": "f" * 32, "settings": {"steps": 2000}}
    (folder / "state.json").write_text(json.dumps(state))
    digests = {p.name: shards.file_digest(str(p)) for p in folder.iterdir()}
    (folder / "digests.json").write_text(json.dumps(digests))
    return folder


def test_a_checkpoint_shows_step_size_and_integrity(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "step-001200")
    text = shown(folder)
    assert "1,200" in text and "34,567" in text and "hidden_size" in text
    assert "all 3 files agree" in text
    (folder / "config.json").write_text('{"hidden_size": 5}')
    assert "damaged: config.json" in shown(folder)
    (folder / "model.safetensors").write_bytes(b"\1")
    with pytest.raises(errors.ManifestInvalid, match="no weights"):
        inspect(str(folder))


def test_a_recipe_marks_values_that_are_not_the_default(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("seed = 9\n[vocab]\nsize = 4096\n")
    text = shown(tmp_path / "mine.toml", color=True)
    assert "\x1b[1;32m4096" in text
    assert "Recipe mine" in text


def test_a_path_with_nothing_to_show_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent", tmp_path / "absent.parquet"):
        with pytest.raises(errors.InputMissing):
            inspect(str(path))


def test_hostile_text_is_never_markup(tmp_path: Path) -> None:
    text = f"[bold]not bold[/bold] [link=http://x]y[/link] {HOSTILE}"
    write_stage(tmp_path / "clean", "clean", {"documents": (schemas.DOCUMENTS, [document(0, text)])})
    assert "[bold]not bold[/bold] [link=http://x]" in shown(tmp_path / "clean/documents/part-00000-00000.parquet")


def test_a_vocabulary_has_no_tables_and_one_shard_is_singular(run_dir: Path) -> None:
    assert "Tables" not in shown(run_dir / "vocab")
    assert "1 shard, part-00000-00000.arrow" in shown(run_dir / "instances/train")


def log_of(folder: Path, steps: int) -> None:
    lines: list[dict[str, object]] = [
        {"step": k, "tokens": 100 * k, "mlm_loss": 9 - k / 8, "unigram": 6.75, "lr": 1e-4} for k in range(1, steps + 1)
    ]
    lines.append({"step": steps, "heldout_loss": 7.125, "heldout_unigram": 7.25, "heldout_accuracy": 0.1})
    lines += [{"step": steps, "warning": "it is constant"}, {"step": 3, "skipped": "spike"}]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_checkpoints_are_listed_with_their_losses(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for step, loss in ((1200, None), (800, 7.125)):
        folder = checkpoint(tmp_path / f"checkpoints/step-{step:06d}")
        state = {"step": step, "tokens": 30 * step, "heldout": loss, "heldout_length": 128}
        (folder / "state.json").write_text(json.dumps(state))
    (tmp_path / "checkpoints/step-000900").mkdir()
    (tmp_path / "checkpoints/.unfinished-step-001300").mkdir()
    text = shown(tmp_path / "checkpoints")
    at = [text.index(part) for part in ("step-000800", "24,000", "7.125", "step-000900", "step-001200", "36,000")]
    assert at == sorted(at) and "unfinished" not in text
    assert "inspect" in text.splitlines()[-1] and "step-001200" in text.splitlines()[-1]
    log_of(tmp_path, 9)
    both = shown(tmp_path)  # an unfinished training has no manifest
    assert "step-000800" in both and "of 9 lines" in both


def test_a_log_shows_its_last_lines_and_names_report(tmp_path: Path) -> None:
    log_of(tmp_path, 9)
    text = shown(tmp_path / "log.jsonl", rows=2)
    assert "the last 2 of 9 lines" in text and "8.625" not in text
    for part in (
        "7.875",
        "6.75",
        "7.125",
        "7.25",
        "step 9: it is constant",
        "steps skipped: 1, the last of them 3",
    ):
        assert part in text, part
    assert f"corpusforge report {tmp_path}:" in " ".join(text.split())
    assert "7.875" not in shown(tmp_path / "log.jsonl", rows=2, skip=2)
    (tmp_path / "log.jsonl").write_text("")
    with pytest.raises(errors.InputMissing, match="it has no lines yet"):
        inspect(str(tmp_path / "log.jsonl"))
