"""Of pages with one URL only the newest is cleaned: any sharding, any workers, after a crash, from any format."""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from corpusforge import recipe, shards
from corpusforge.clean import url_duplicates
from corpusforge.sections import Recipe
from corpusforge.shards import Manifest
from corpusforge.stages import clean
from corpusforge.stages.stage import Execution
from tests.oracles import c4_urls

TEXT = "This is a line that has quite enough words in it. So has this other one here. And a third one stands here too."
HTML = f"<html><body><p>{TEXT}</p></body></html>".encode()
Page = tuple[str | None, str | None, str]
"""URL, time, text."""


def pages(count: int) -> list[Page]:
    """Pages of which many share their URL, some without URL or time."""
    found: list[Page] = []
    for i in range(count):
        site = i * 7 % (count // 3)
        url = (
            None
            if i % 11 == 0
            else f"http{'s' if i % 2 else ''}://{'www.' if i % 3 else ''}a.org/{site}{'/' * (i % 2)}"
        )
        when = None if i % 5 == 0 else f"2024-05-{1 + i * 13 % 28:02d}T00:00:00Z"
        found.append((url, when, f"Page number {i}. {TEXT}"))
    return found


def expected(found: list[Page]) -> set[str]:
    """The texts that stay where times of one URL differ (ties are compared elsewhere)."""
    newest: dict[str, str] = {}
    for url, when, _ in found:
        if url:
            key = c4_urls.normalised(url)
            newest[key] = max(newest.get(key, ""), when or "")
    return {text for url, when, text in found if not url or (when or "") == newest[c4_urls.normalised(url)]}


def without_ties(found: list[Page]) -> list[Page]:
    """The pages without those whose URL and time an earlier one has."""
    kept: dict[tuple[str, str | None] | int, Page] = {}
    for i, page in enumerate(found):
        kept.setdefault((c4_urls.normalised(page[0]), page[1]) if page[0] else i, page)
    return list(kept.values())


def write_jsonl(found: list[Page], folder: Path, files: int) -> None:
    folder.mkdir()
    for number in range(files):
        rows = [json.dumps({"url": u, "timestamp": t, "text": x}) for u, t, x in found[number::files]]
        (folder / f"{number}.jsonl").write_text("\n".join([*rows, "{bad"]) + "\n")


def settings(folder: Path, **more: object) -> Recipe:
    """A recipe that drops nothing but older copies."""
    values = {
        "input.paths": [str(folder)],
        "urls.duplicates": "newest",
        "clean.language": "",
        "clean.badwords": "off",
        "clean.sentences": "builtin",
        "clean.rules": "c4-tfds-3.1",
    }
    return recipe.override(Recipe(), {**values, **more})


def texts(folder: Path) -> set[str]:
    """The texts that stayed."""
    return {text for path in (folder / "documents").iterdir() for text in pq.read_table(path)["text"].to_pylist()}


def test_the_newest_stays(tmp_path: Path) -> None:
    found = without_ties(pages(200))
    write_jsonl(found, tmp_path / "in", 3)
    outcome = clean.clean(settings(tmp_path / "in"), str(tmp_path / "out"), Execution(workers=1))
    wanted = expected(found)
    assert 20 < len(wanted) < len(found) - 20
    assert texts(tmp_path / "out") == wanted
    manifest = outcome.manifest
    assert manifest.tallies["page:older-copy"]["rows"] == len(found) - len(wanted)
    assert manifest.statistics["documents_in"] == len(found)
    assert not (tmp_path / "out" / "scratch").exists()
    rejects = pa.concat_tables(pq.read_table(path) for path in sorted((tmp_path / "out/rejects").iterdir()))
    older = [row for row in rejects.to_pylist() if row["reason"] == "page:older-copy"]
    kept = {row["id"] for p in (tmp_path / "out/documents").iterdir() for row in pq.read_table(p).to_pylist()}
    assert {row["detail"].removeprefix("the newest copy is ") for row in older} <= kept
    assert {row["text"] for row in older} == {text for _, _, text in found} - wanted


def test_text_files_have_no_urls(tmp_path: Path) -> None:
    write_jsonl([("http://a.org", None, TEXT), ("a.org/", None, TEXT)], tmp_path / "in", 1)
    (tmp_path / "in" / "a.txt").write_text(TEXT)
    outcome = clean.clean(settings(tmp_path / "in"), str(tmp_path / "out"), Execution(workers=1))
    assert outcome.manifest.rows["documents"] == 2


def test_lists_of_domains_drop_pages(tmp_path: Path) -> None:
    write_jsonl([("http://a.org/1", None, TEXT), ("http://x.b.org/", None, TEXT)], tmp_path / "in", 1)
    (tmp_path / "names.txt").write_text("b.org\n")
    made = settings(tmp_path / "in", **{"urls.block": f"@{tmp_path / 'names.txt'}"})
    manifest = clean.clean(made, str(tmp_path / "out"), Execution(workers=1)).manifest
    assert manifest.tallies["page:url-blocked"]["rows"] == 1
    assert manifest.rows["documents"] == 1


@pytest.mark.slow
def test_workers_rounds_and_resuming_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jsonl(pages(300), tmp_path / "in", 5)
    monkeypatch.setattr("corpusforge.documents.plan._grouped", lambda parts, _: [(part,) for part in parts])
    made = settings(tmp_path / "in")
    first = clean.clean(made, str(tmp_path / "a"), Execution(workers=1)).manifest
    second = clean.clean(made, str(tmp_path / "b"), Execution(workers=3)).manifest
    assert second.content == first.content
    monkeypatch.setattr(url_duplicates, "plan_rounds", lambda *_: 4)
    compare, calls = url_duplicates._compare, []

    def killed(*given: object) -> None:
        calls.append(given[-1])
        if len(calls) == 3:
            raise KeyboardInterrupt
        compare(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(url_duplicates, "_compare", killed)
    with pytest.raises(KeyboardInterrupt):
        clean.clean(made, str(tmp_path / "c"), Execution(workers=1))
    third = clean.clean(made, str(tmp_path / "c"), Execution(workers=1)).manifest
    assert calls == [0, 1, 2, 2, 3]
    assert third.content == first.content
    assert third.tallies == first.tallies


def test_a_unit_resumes_after_its_last_shard(tmp_path: Path) -> None:
    """Shards of one megabyte; all but the first are lost with the manifest, as by a crash."""
    found = without_ties([(url, when, f"{text} " * 60) for url, when, text in pages(600)])
    write_jsonl(found, tmp_path / "in", 1)
    made = settings(tmp_path / "in", **{"clean.shard_megabytes": 1})
    whole = clean.clean(made, str(tmp_path / "out"), Execution(workers=1)).manifest
    assert len(whole.shards["documents"]) > 1
    (tmp_path / "out" / shards.MANIFEST).unlink()
    for path in (tmp_path / "out").glob("*/part-00000-00001.*"):
        path.unlink()
    again = clean.clean(made, str(tmp_path / "out"), Execution(workers=1)).manifest
    assert again.content == whole.content
    assert again.tallies == whole.tallies


def write_warc(path: Path, records: list[tuple[str, str, str, str, bytes]]) -> None:
    """Records of (type, URL, date, status, body)."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for kind, url, date, status, body in records:
            head = StatusAndHeaders(status, [("Content-Type", "text/html")], protocol="HTTP/1.1")
            given = {"WARC-Date": date}
            made = writer.create_warc_record(url, kind, io.BytesIO(body), http_headers=head, warc_headers_dict=given)
            writer.write_record(made)


def test_only_records_that_become_documents_count(tmp_path: Path) -> None:
    """A newer redirect, revisit or empty page does not take the place of the page."""
    url = "http://a.org/"
    days = [f"2024-05-{day:02d}T00:00:00Z" for day in range(1, 7)]
    (tmp_path / "in").mkdir()
    write_warc(
        tmp_path / "in" / "a.warc.gz",
        [
            ("response", url, days[0], "200 OK", HTML.replace(b"This", b"Once this")),
            ("response", "https://www.a.org", days[1], "200 OK", HTML),
            ("response", url, days[2], "301 Moved", HTML),
            ("response", url, days[3], "200 OK", b" "),
            ("revisit", url, days[4], "200 OK", b""),
            ("response", url, days[5], "200 OK", b"%PDF-1.4 not a page"),
        ],
    )
    outcome = clean.clean(settings(tmp_path / "in"), str(tmp_path / "out"), Execution(workers=1))
    assert outcome.manifest.rows["documents"] == 1
    assert outcome.manifest.tallies["page:older-copy"]["rows"] == 1
    kept = pq.read_table(next((tmp_path / "out" / "documents").iterdir())).to_pylist()[0]
    assert kept["url"] == "https://www.a.org"
    assert kept["timestamp"] == datetime.datetime(2024, 5, 2, tzinfo=datetime.UTC)


def test_the_digest_distinguishes_newest_from_keep(tmp_path: Path) -> None:
    write_jsonl(pages(30), tmp_path / "in", 1)
    made = settings(tmp_path / "in")
    kept = dataclasses.replace(made, urls=dataclasses.replace(made.urls, duplicates="keep"))
    clean.clean(made, str(tmp_path / "a"), Execution(workers=1))
    clean.clean(kept, str(tmp_path / "b"), Execution(workers=1))
    a, b = Manifest.load(str(tmp_path / "a")), Manifest.load(str(tmp_path / "b"))
    assert a.digest != b.digest
    assert b.rows["documents"] == 30


@pytest.mark.parametrize("kind", ["jsonl", "warc"])
def test_cutting_the_input_into_other_files_changes_nothing(kind: str, tmp_path: Path) -> None:
    """Also where pages have the same URL and time: the content decides which stays."""
    found = [(url, "2024-05-01T00:00:00Z", text) for url, _, text in pages(60) if url]
    stayed = []
    for files in (1, 2, 3):
        folder = tmp_path / f"in-{files}"
        random.Random(files).shuffle(found)
        if kind == "jsonl":
            write_jsonl(found, folder, files)
        else:
            folder.mkdir()
            for k in range(files):
                rows = [("response", u, t, "200 OK", f"<p>{x}".encode()) for u, t, x in found[k::files] if u and t]
                write_warc(folder / f"{files}-{k}.warc.gz", rows)
        clean.clean(settings(folder), str(tmp_path / f"out-{files}"), Execution(workers=1))
        stayed.append(texts(tmp_path / f"out-{files}"))
    assert len(stayed[0]) == len({c4_urls.normalised(url) for url, _, _ in found})
    assert stayed[0] == stayed[1] == stayed[2]
