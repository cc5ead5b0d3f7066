"""Gopher's and FineWeb's rules against datatrove's three filters, on the same text, in one process and one thread.

    python benchmarks/quality_vs_datatrove.py --data ../shared/data [--megabytes 6] [--rounds 3]

needs ``benchmarks/requirements-datatrove.txt`` beside CorpusForge. Theirs: GopherQualityFilter, GopherRepetitionFilter
and FineWebQualityFilter one after the other, each on what the one before kept; ours: the packs ``gopher-datatrove`` and
``fineweb`` likewise. datatrove asks spaCy for words and keeps the last five answers, so each page is split once; it is
measured as it is and, beside that, with `str.split` in place of spaCy, which are the words of our packs.

Before the times each filter's decisions are compared page by page, with both kinds of words. With the same words there
must be no difference, or it stops. Both run in turn; medians are printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusforge.clean.packs import load_pack, step_of
from corpusforge.clean.step import KEPT, Step
from corpusforge.sections import Clean

sys.path.insert(0, str(Path(__file__).parent))
from clean_vs_tfds import batches_of, oddities, prose, take, web_pages

QUALITY = {
    "gopher_short_doc": "page:few-words",
    "gopher_long_doc": "page:many-words",
    "gopher_below_avg_threshold": "page:short-words",
    "gopher_above_avg_threshold": "page:long-words",
    "gopher_too_many_hashes": "page:hash-marks",
    "gopher_too_many_ellipsis": "page:ellipses",
    "gopher_too_many_bullets": "page:bullet-lines",
    "gopher_too_many_end_ellipsis": "page:ellipsis-lines",
    "gopher_below_alpha_threshold": "page:few-alphabetic-words",
    "gopher_enough_stop_words": "page:few-stop-words",
}
REPETITION = {
    "empty": "kept",  # they drop a page without any text here; ours leaves that to the number of words
    "dup_para_frac": "page:duplicate-paragraphs",
    "dup_para_char_frac": "page:duplicate-paragraph-characters",
    "dup_line_frac": "page:duplicate-lines",
    "dup_line_char_frac": "page:duplicate-line-characters",
    **{f"top_{n}_gram": f"page:top-{n}-gram" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"page:duplicate-{n}-grams" for n in range(5, 11)},
}
FINEWEB = {
    "empty": "page:no-lines",
    "line_punct_ratio": "page:few-line-ends",
    "short_line_ratio": "page:short-lines",
    "char_dup_ratio": "page:duplicate-line-characters",
    "list_ratio": "page:list",
}
"""Our reason for each of theirs."""


@contextmanager
def white_space_words() -> Iterator[None]:
    """datatrove's filters with `str.split` in place of spaCy."""
    from datatrove.pipeline.filters import fineweb_quality_filter, gopher_quality_filter, gopher_repetition_filter

    modules = (gopher_quality_filter, gopher_repetition_filter, fineweb_quality_filter)
    before = [module.split_into_words for module in modules]
    for module in modules:
        module.split_into_words = lambda text, language: text.split()
    try:
        yield
    finally:
        for module, function in zip(modules, before, strict=True):
            module.split_into_words = function


def their_filters() -> dict[str, tuple[Any, dict[str, str]]]:
    """datatrove's filters by name, and our reason for each of theirs."""
    from datatrove.pipeline.filters import FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter

    return {
        "quality": (GopherQualityFilter(), QUALITY),
        "repetition": (GopherRepetitionFilter(), REPETITION),
        "fineweb": (FineWebQualityFilter(), FINEWEB),
    }


def our_steps() -> dict[str, Step]:
    """Our packs by the same names: that of Gopher once without its rules of repetition and once with these alone."""
    gopher: Any = load_pack("gopher-datatrove")
    limits = [name for name in gopher.rules() if name.startswith(("min_", "max_"))]
    repeats = [name for name in limits if "duplicate" in name or "gram" in name]
    without = dataclasses.replace(gopher, **dict.fromkeys(repeats, 0))
    alone = dataclasses.replace(gopher, **dict.fromkeys([name for name in limits if name not in repeats], 0))
    packs = {"quality": without, "repetition": alone, "fineweb": load_pack("fineweb")}
    return {name: step_of(pack, Clean()) for name, pack in packs.items()}


def their_reasons(kind: Any, names: dict[str, str], pages: list[str]) -> list[str]:
    """What a filter of datatrove says of each page, in our words."""
    from datatrove.data import Document

    answers = [kind.filter(Document(text=text, id=str(n))) for n, text in enumerate(pages)]
    return ["kept" if answer is True else names[answer[1]] for answer in answers]


def our_reasons(step: Step, batches: list[pa.RecordBatch]) -> list[str]:
    """What a step says of each page."""
    verdicts = [step.apply(batch) for batch in batches]
    return [verdict.reasons[code] for verdict in verdicts for code in verdict.codes.tolist()]


def compare(pages: list[str]) -> dict[str, Counter[tuple[str, str]]]:
    """By filter, how often they say one thing and we another: ``(theirs, ours)``."""
    batches, steps, found = batches_of(pages), our_steps(), {}
    for name, (kind, names) in their_filters().items():
        pairs = zip(their_reasons(kind, names, pages), our_reasons(steps[name], batches), strict=True)
        found[name] = Counter(pair for pair in pairs if pair[0] != pair[1])
    return found


def differing(name: str, pages: list[str]) -> None:
    """Print how decisions differ; stop where they do with the same words."""
    with white_space_words():
        same = compare(pages)
    if any(same.values()):
        sys.exit(f"{name}: with the same words: {same}")
    for kind, pairs in compare(pages).items():
        kept = sum(count for (theirs, ours), count in pairs.items() if "kept" in (theirs, ours))
        print(f"  {name:8} {kind:10} {len(pages):6} pages: 0 differ with the same words; with spaCy's {kept} are kept")
        print(f"      by one only, {sum(pairs.values()) - kept} go for another reason")
        for (theirs, ours), count in pairs.most_common(6):
            print(f"      {count:5} theirs {theirs:28} ours {ours}")


def theirs_chained(pages: list[str]) -> int:
    """Pages that all three filters keep."""
    from datatrove.data import Document

    kinds = [kind for kind, _ in their_filters().values()]
    return sum(all(kind.filter(Document(text=text, id="")) is True for kind in kinds) for text in pages)


def ours_chained(batches: list[pa.RecordBatch]) -> int:
    """Pages that both packs keep."""
    steps = [step_of(load_pack(name), Clean()) for name in ("gopher-datatrove", "fineweb")]
    kept = 0
    for batch in batches:
        for step in steps:
            batch = batch.filter(pa.array(step.apply(batch).codes == KEPT))
        kept += batch.num_rows
    return kept


def measure(name: str, pages: list[str], rounds: int) -> None:
    """Print the speeds of one corpus."""
    from datatrove.utils.text import split_into_parts

    batches, size = batches_of(pages), sum(len(page.encode()) for page in pages) / 1e6

    def split() -> int:
        with white_space_words():
            return theirs_chained(pages)

    def spacy() -> int:
        split_into_parts.cache_clear()
        return theirs_chained(pages)

    jobs: dict[str, Callable[[], int]] = {"spacy": spacy, "split": split, "ours": lambda: ours_chained(batches)}
    times: dict[str, list[float]] = {key: [] for key in jobs}
    kept = {}
    for _ in range(rounds):
        for key, job in jobs.items():
            start = time.process_time()
            kept[key] = job()
            times[key].append(time.process_time() - start)
    spent = {key: statistics.median(values) for key, values in times.items()}
    print(
        f"{name:8} {size:6.1f} MB {len(pages):6} pages, kept {kept['spacy']}, {kept['split']}, {kept['ours']}   "
        f"datatrove {size / spent['spacy']:5.2f} MB/s, with str.split {size / spent['split']:5.2f}   "
        f"ours {size / spent['ours']:6.2f}   "
        f"ratio {spent['spacy'] / spent['ours']:6.1f}, {spent['split'] / spent['ours']:5.1f}",
        flush=True,
    )


def main() -> None:
    """Compare decisions, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=6, help="of each kind of text")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    versions = ", ".join(f"{name} {version(name)}" for name in ("datatrove", "spacy", "pyarrow", "numpy"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}; one thread")
    budget = int(arguments.megabytes * 1e6)
    corpora = {"web": web_pages, "prose": prose, "oddities": oddities}
    pages = {name: take(source(arguments.data), budget) for name, source in corpora.items()}
    for name, texts in pages.items():
        differing(name, texts)
    for name, texts in pages.items():
        measure(name, texts, arguments.rounds)


if __name__ == "__main__":
    main()
