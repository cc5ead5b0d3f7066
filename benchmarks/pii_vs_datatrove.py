"""Masking e-mail and IP addresses against datatrove's PIIFormatter, on the same text, in one process and one thread.

    python benchmarks/pii_vs_datatrove.py --data ../shared/data [--megabytes 16] [--rounds 3] [--show]

needs ``benchmarks/requirements-datatrove.txt`` beside CorpusForge. The two do not search for the same, so what each
masks is counted: by both (the same bytes or some of them), or by one only; ``--show`` prints the latter. datatrove does
not search for telephone numbers and IPv6, so the speed with these is a row of its own. Medians of alternating rounds,
by CPU time.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from clean_vs_tfds import batches_of, prose, take, web_pages

from corpusforge.clean.pii import EMAIL, IPV4, KINDS, PiiStep, find
from corpusforge.text import text_bytes

Span = tuple[int, int, int]
"""Page, and the range of bytes that is masked there."""


def ours(batches: list[Any], kind: int) -> set[Span]:
    """What we mask of one kind."""
    found: set[Span] = set()
    before = 0
    for batch in batches:
        data, offsets = text_bytes(batch["text"])
        starts, stops, kinds = find(data, offsets, ("email",) if kind == EMAIL else ("ip",))
        for start, stop, sort in zip(starts.tolist(), stops.tolist(), kinds.tolist(), strict=True):
            if sort == kind:
                page = int(offsets.searchsorted(start, "right")) - 1
                found.add((before + page, start - int(offsets[page]), stop - int(offsets[page])))
        before += batch.num_rows
    return found


def theirs(pages: list[str], replacer: Any) -> set[Span]:
    """What datatrove masks by one of its expressions."""
    return {
        (number, len(page[: match.start()].encode()), len(page[: match.end()].encode()))
        for number, page in enumerate(pages)
        for match in replacer.regex.finditer(page)
        if not replacer.validator or replacer.validator(match[0])
    }


def touching(spans: set[Span], others: set[Span]) -> set[Span]:
    """Those that share a byte with one of the others."""
    held: dict[int, list[Span]] = {}
    for other in others:
        held.setdefault(other[0], []).append(other)
    return {s for s in spans if any(o[1] < s[2] and s[1] < o[2] for o in held.get(s[0], ()))}


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    """Print what each side masks, and how fast."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    from datatrove.pipeline.formatters.pii import PIIFormatter

    half = int(given.megabytes * 5e5)
    pages = [*take(web_pages(given.data), half), *take(prose(given.data), half)]
    batches = batches_of(pages)
    size = sum(len(page.encode()) for page in pages) / 1e6
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(", ".join(f"{name} {version(name)}" for name in ("datatrove", "numpy", "pyarrow")))
    print(f"{len(pages):,} pages, {size:.1f} MB, half web pages, half prose")
    peer = PIIFormatter()
    compare(pages, batches, peer, show=given.show)
    runs: dict[str, list[float]] = {
        "CorpusForge, all three kinds": [],
        "CorpusForge, e-mail and IP": [],
        "datatrove": [],
    }
    for _ in range(given.rounds):
        for name, kinds in (("CorpusForge, all three kinds", KINDS), ("CorpusForge, e-mail and IP", ("email", "ip"))):
            step = PiiStep("mask", kinds)
            runs[name].append(seconds(lambda s=step: [s.apply(batch) for batch in batches]))
        runs["datatrove"].append(seconds(lambda: [peer.format(page) for page in pages]))
    print("| | MB/s |\n|---|---|")
    for name, taken in runs.items():
        print(f"| {name} | {size / statistics.median(taken):.1f} |")


def compare(pages: list[str], batches: list[Any], peer: Any, *, show: bool) -> None:
    """Print how many addresses both sides mask, or one alone; with ``show`` also which."""
    for name, kind, replacer in (("e-mail", EMAIL, peer.emails_replacer), ("IPv4", IPV4, peer.ip_replacer)):
        mine, other = ours(batches, kind), theirs(pages, replacer)
        both = touching(mine, other)
        alone, missed = mine - both, other - touching(other, mine)
        print(
            f"{name}: masked by both {len(both):,}, by CorpusForge only {len(alone)}, by datatrove only {len(missed)}"
        )
        for title, spans in (("CorpusForge", alone), ("datatrove", missed)) if show else ():
            for page, start, stop in sorted(spans):
                data = pages[page].encode()
                print(f"  {title}: {data[max(0, start - 20) : stop + 20].decode('utf-8', 'replace')!r}")


if __name__ == "__main__":
    main()
