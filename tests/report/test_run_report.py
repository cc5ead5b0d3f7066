"""The page is complete for complete runs, names what is missing or damaged, and shows corpus text only as text."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from corpusforge import errors
from corpusforge.report import html, run_report
from corpusforge.report.gather import funnel, gather
from corpusforge.report.run_report import unigram_of


class Elements(HTMLParser):
    """Tags, attributes and visible text as a browser parses them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._in: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._in and self._in.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._in):
            self.words.append(data)


def parsed(page: str) -> Elements:
    parser = Elements()
    parser.feed(page)
    return parser


@pytest.fixture
def page(run_dir: Path) -> str:
    path = run_dir / "report.html"
    assert run_report.write_report(str(run_dir), str(path)) == str(path)
    return path.read_text("utf-8")


def test_every_section_is_present(page: str) -> None:
    ids = {attributes.get("id") for tag, attributes in parsed(page).tags if tag == "section"}
    assert ids == {"funnel", "reasons", "repeats", "vocabulary", "instances", "training", "evaluation", "made"}
    for heading in ("Funnel", "Duplicates", "Vocabulary"):
        assert f"<h2>{heading}" in page


def test_nothing_is_loaded_from_anywhere(page: str) -> None:
    for tag, attributes in parsed(page).tags:
        for name in ("src", "href", "action", "srcset", "data"):
            value = attributes.get(name) or ""
            assert not value or value.startswith("#"), (tag, name, value)
    assert not re.search(r"@import|url\(", page[: page.index("<script>")])
    assert "default-src 'none'" in page


def test_corpus_text_is_escaped(page: str) -> None:
    tags = parsed(page).tags
    assert not [tag for tag, _ in tags if tag == "img"]
    assert not [attributes for _, attributes in tags if any(name.startswith("on") for name in attributes)]
    scripts = [attributes for tag, attributes in tags if tag == "script"]
    figures = sum(tag == "figure" for tag, _ in tags)
    assert len(scripts) == figures + 2  # plotly, ours, and the data of each plot
    body = page[page.index("<main>") :]
    assert "&lt;img src=x onerror=alert(2)&gt;" in body
    assert "\x1b" not in body and "\u202e" not in body


def test_plotly_is_embedded_once(page: str) -> None:
    assert page.count("plotly.js v") <= 2  # its own banner names it once or twice
    assert len(page) < 7_000_000


def test_unigram_line_and_scores_are_drawn(page: str, run_dir: Path) -> None:
    assert unigram_of(gather(str(run_dir))) == 6.25
    assert "unigram entropy 6.250" in page
    assert "unigram, held-out" in page
    assert "word order" in page


def test_text_replaced_in_pages_does_not_count_as_dropped_pages(page: str) -> None:
    assert "Replaced in kept pages" in page
    assert "text:email: 5 times" not in page


def test_a_duplicate_is_shown_beside_its_kept_copy(page: str) -> None:
    assert "<mark>The first li" in page


@pytest.mark.parametrize("gone", ["clean", "dedupe", "vocab", "instances", "pretrain", "evaluate"])
def test_any_stage_may_be_missing(run_dir: Path, gone: str) -> None:
    shutil.rmtree(run_dir / gone)
    page = run_report.page(gather(str(run_dir)))
    assert "</html>" in page


def test_damaged_files_are_named_and_the_rest_is_shown(run_dir: Path) -> None:
    (run_dir / "dedupe/manifest.json").write_text("{")
    (run_dir / "evaluate/evaluation.json").write_text("{")
    (run_dir / "vocab/manifest.json").unlink()
    with (run_dir / "pretrain/log.jsonl").open("a") as file:
        file.write('{"step": 3, "lo')
    (run_dir / "clean/rejects/part-00000-00000.parquet").write_bytes(b"PAR1")
    page = run_report.page(gather(str(run_dir)))
    assert page.count('class="problem"') == 4
    assert "No example was kept." in page


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(errors.InputMissing, match="no finished stage"):
        run_report.write_report(str(tmp_path), str(tmp_path / "report.html"))


def test_the_funnel_counts_no_stage_twice(run_dir: Path) -> None:
    steps = funnel(gather(str(run_dir)).manifests)
    assert [(s.label, s.documents, s.text_bytes) for s in steps] == [
        ("raw records", 4, 900),
        ("documents read", 3, 400),
        ("cleaned", 2, 200),
        ("deduplicated", 1, 150),
    ]


def test_a_funnel_that_begins_at_dedupe_shows_its_input(run_dir: Path) -> None:
    manifests = gather(str(run_dir)).manifests
    del manifests["clean"]
    assert [s.label for s in funnel(manifests)] == ["before deduplication", "deduplicated"]


def test_plot_data_cannot_end_its_script() -> None:
    from corpusforge.report import figures

    plot = html.plot(figures.reasons_figure({"</script><b>": 3}, "lines"), "x")
    assert plot.count("</script>") == 1


@pytest.mark.parametrize(
    ("folder", "stage", "sections"),
    [
        ("clean", "clean", {"funnel", "reasons", "made"}),
        ("dedupe", "dedupe", {"funnel", "repeats", "made"}),
        ("vocab", "train-vocab", {"vocabulary", "made"}),
        ("instances", "build-instances", {"instances", "made"}),
        ("pretrain", "pretrain", {"training", "made"}),
        ("evaluate", "evaluate", {"evaluation", "made"}),
    ],
)
def test_the_folder_of_one_stage_is_reported_alone(run_dir: Path, folder: str, stage: str, sections: set[str]) -> None:
    elements = parsed(run_report.page(gather(str(run_dir / folder))))
    assert {attributes.get("id") for tag, attributes in elements.tags if tag == "section"} == sections
    words = " ".join(elements.words)
    assert f"One stage alone: {stage}" in words
    assert "not finished" not in words


def test_an_unfinished_stage_is_named(run_dir: Path) -> None:
    folder = run_dir / "instances"
    (folder / "manifest.json").rename(folder / "run.json")
    with pytest.raises(errors.InputMissing, match="no such folder"):
        gather(str(run_dir / "nope"))
    with pytest.raises(
        errors.InputMissing, match=r"build-instances: begun, not finished \(no manifest in .*instances\)"
    ):
        gather(str(folder))
