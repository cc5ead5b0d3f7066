"""Folders: claimed by one stage at a time, resumed by the same run, never emptied of files that no stage wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpusforge import errors, sections, shards
from corpusforge.stages import output_folder
from corpusforge.stages.output_folder import RUN, Claim, claim
from corpusforge.stages.stage import fingerprint, manifest_of


def _claim(folder: Path, size: int = 1, **more: Any) -> Claim:
    with claim(str(folder), "clean", {"clean": {"size": size}}, {"input": "x"}, **more) as claimed:
        return claimed


def _work(folder: Path) -> None:
    shards.write_json(str(folder / "entries/part-00000-00000.json"), {"half": "done"})


def test_the_same_run_resumes_and_another_is_refused(tmp_path: Path) -> None:
    claimed = _claim(tmp_path / "out")
    _work(tmp_path / "out")
    assert _claim(tmp_path / "out").digest == claimed.digest
    assert (tmp_path / "out/entries/part-00000-00000.json").exists()
    with pytest.raises(errors.OutputTaken, match=r"clean\.size 1 -> 2"):
        _claim(tmp_path / "out", size=2)
    _claim(tmp_path / "out", size=2, overwrite=True)
    assert not (tmp_path / "out/entries").exists()


def test_a_refusal_names_what_differs_and_nothing_else(tmp_path: Path) -> None:
    """Values read back from JSON have lists for tuples and may have other orders of keys: no difference."""
    rules = {"kept": ("a", "b"), "most": 3, "words": tuple("abcdefghij" * 20)}
    recipe: dict[str, Any] = {"clean": {"pii": "mask"}, "steps": [("c4", rules)]}
    with claim(str(tmp_path), "clean", recipe, {}):
        _work(tmp_path)
    turned = {"steps": [("c4", dict(reversed(rules.items())))], "clean": {"pii": "drop"}}
    with (
        pytest.raises(errors.OutputTaken, match=r"\(clean\.pii 'mask' -> 'drop'\);"),
        claim(str(tmp_path), "clean", turned, {}),
    ):
        pass
    other = {"clean": {"pii": "mask"}, "steps": [("c4", rules | {"words": ()})]}
    with pytest.raises(errors.OutputTaken, match=r"\(steps changed\);"), claim(str(tmp_path), "clean", other, {}):
        pass


def test_a_failed_first_attempt_does_not_bind(tmp_path: Path) -> None:
    """A folder with nothing but the note of a stage that wrote nothing yet can be taken over by its next attempt."""
    _claim(tmp_path / "out")
    _claim(tmp_path / "out", size=2)


def test_counted_words_are_replaced_but_not_other_files_beside_them(tmp_path: Path) -> None:
    """A learner that refuses a size leaves its words; they are counted again for any other size."""
    _claim(tmp_path)
    words = tmp_path / "words"
    shards.write_bytes(str(words / "part-00007.arrow"), b"x")
    _claim(tmp_path, size=2)
    assert not words.exists()
    for name in ("thesis.txt", "part-00007.arrow.txt", "mine/part-00007.arrow"):
        shards.write_bytes(str(words / "part-00007.arrow"), b"x")
        shards.write_bytes(str(words / name), b"years of work")
        with pytest.raises(errors.OutputTaken, match=r"clean\.size"):
            _claim(tmp_path, size=3)
        assert (words / name).read_bytes() == b"years of work"
        (words / name).unlink()
        if "/" in name:
            (words / "mine").rmdir()
    _work(tmp_path)  # an entry beside them: a run to go on with
    with pytest.raises(errors.OutputTaken, match=r"clean\.size"):
        _claim(tmp_path, size=3)
    assert (words / "part-00007.arrow").exists()


def test_only_what_stages_write_is_removed(tmp_path: Path) -> None:
    _claim(tmp_path)
    _work(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    batches = ("bad-step-000007.safetensors", "bad-step-000007-rank-1.safetensors")
    for name in (*batches, "bad-step.safetensors"):
        (tmp_path / name).write_bytes(b"")
    _claim(tmp_path, size=2, overwrite=True)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"
    assert (tmp_path / "bad-step.safetensors").exists()
    assert not any((tmp_path / name).exists() for name in batches)


@pytest.mark.parametrize("note", ['{"wandb": 1}', "[]", '{"stage": "other tool"}'])
def test_a_run_json_of_others_is_not_ours(tmp_path: Path, note: str) -> None:
    (tmp_path / RUN).write_text(note)
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(errors.OutputTaken, match="no stage wrote"):
        _claim(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").exists()


def test_what_a_stage_reads_is_never_its_output(tmp_path: Path) -> None:
    _claim(tmp_path / "clean")
    for inside in (tmp_path / "clean", tmp_path / "clean/documents"):
        with pytest.raises(errors.OutputTaken, match="which this stage reads"):
            _claim(tmp_path / "clean", overwrite=True, reads=[str(inside)])
    assert (tmp_path / "clean" / RUN).exists()


def test_two_at_once(tmp_path: Path) -> None:
    with (
        claim(str(tmp_path / "out"), "clean", {}, {}),
        pytest.raises(errors.OutputTaken, match="another run is writing"),
        claim(str(tmp_path / "out"), "clean", {}, {}),
    ):
        pass


def test_unfinished_work_on_other_units_is_restarted(tmp_path: Path) -> None:
    _claim(tmp_path, cuts="a")
    _work(tmp_path)
    _claim(tmp_path, cuts="a")
    assert (tmp_path / "entries").exists()
    _claim(tmp_path, cuts="b")
    assert not (tmp_path / "entries").exists()


def test_finished_means_that_the_shards_are_there(tmp_path: Path) -> None:
    claimed = _claim(tmp_path)
    part = tmp_path / "documents/part-00000-00000.parquet"
    shard = shards.Shard("documents/part-00000-00000.parquet", 1, 1, "d", "0" * 32)
    shards.write_bytes(str(part), b"x")
    entry = {"unit": 0, "shard": 0, "position": 1, "last": True, "tallies": {}, "statistics": {}}
    entry["tables"] = {"documents": shard.__dict__}
    shards.write_json(str(tmp_path / "entries/part-00000-00000.json"), entry)
    manifest_of(claimed).save(str(tmp_path))
    assert claimed.finished()
    part.unlink()
    assert claimed.finished() is None
    (tmp_path / "manifest.json").write_bytes(b"")
    assert claimed.finished() is None


def test_a_truncated_note_is_still_ours_where_entries_are(tmp_path: Path) -> None:
    _claim(tmp_path)
    _work(tmp_path)
    (tmp_path / RUN).write_bytes(b"")
    with pytest.raises(errors.OutputTaken):
        _claim(tmp_path)
    _claim(tmp_path, overwrite=True)
    assert json.loads((tmp_path / RUN).read_text())["stage"] == "clean"


def test_fingerprints_follow_content_not_place(tmp_path: Path) -> None:
    for folder, text in (("a", "one"), ("b", "one"), ("c", "two")):
        shards.write_bytes(str(tmp_path / folder / "x.txt"), text.encode())
    a, b, c = (fingerprint([(str(tmp_path / f / "x.txt"), "x.txt")]) for f in "abc")
    assert a == b != c
    remote = f"file://{tmp_path}/a/x.txt"
    before = fingerprint([(remote, "x.txt")])
    (tmp_path / "a/x.txt").write_text("one more")
    assert fingerprint([(remote, "x.txt")]) != before


def test_a_folder_from_before_a_rename_is_still_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests hold renamed settings under their old names; errors name them by the new ones."""
    old = {"clean": {"count": 1}}
    with claim(str(tmp_path), "clean", old, {}) as before:
        _work(tmp_path)
    renamed = {"clean.size": sections.Setting("clean.size", 1, "", was="count")}
    monkeypatch.setattr(output_folder, "settings", lambda: renamed)
    with claim(str(tmp_path), "clean", {"clean": {"size": 1}}, {}) as now:
        assert now.digest == before.digest
    with (
        pytest.raises(errors.OutputTaken, match=r"clean\.size 1 -> 2"),
        claim(str(tmp_path), "clean", {"clean": {"size": 2}}, {}),
    ):
        pass
