"""build-instances against `datasets`: documents on disk in, blocks of 512 on disk out, one core each.

    python benchmarks/instances_vs_datasets.py TEXT.jsonl.gz... [--megabytes 10] [--rounds 3]

The peer is what transformers' run_mlm.py does to its text: ``datasets.map`` with a fast tokenizer, then ``map`` with
``group_texts``, which joins everything and cuts it at 512, and what comes out saved to disk. Ours makes doc-sentences
of 512, without masks as there; then, for their rates alone, every other format and mask unit, with masks stored. Both
sides get the same documents and vocabulary (learned from the first tenth). Each side runs in a process of its own,
pinned to one core; imports are not counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from build_instances import (
    Run,
    compare,
    now,
    pin,
    read_texts,
    run_ours,
    run_side,
    show,
    steps,
    versions_of,
    write_corpus,
)

LENGTH = 512

OURS = {
    "doc-sentences": {"masking": "dynamic"},
    "full-sentences": {},
    "segment-pair": {},
    "sentence-pair": {},
    "sop": {},
    "whole-word": {"mask_unit": "whole-word"},
    "ngram": {"mask_unit": "ngram"},
    "span": {"mask_unit": "span"},
}
"""Our sides: settings besides the format; those that are no format are doc-sentences."""


def section_of(side: str) -> Any:
    """The recipe's section [instances] of one of our sides."""
    from corpusforge import sections

    form = "doc-sentences" if "mask_unit" in OURS[side] else side
    return sections.Instances(**{"format": form, "length": LENGTH, "masking": "static", "heldout": 0.0, **OURS[side]})


def run_datasets(source: Path, output: Path) -> Run:
    """The peer, with the functions of run_mlm.py (no masks: those are drawn by the collator)."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(source / "vocab"))

    def tokenize(examples: dict[str, list[str]]) -> Any:
        return tokenizer(examples["text"], return_special_tokens_mask=True)

    def group_texts(examples: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        joined = {k: list(itertools.chain(*examples[k])) for k in examples}
        total = len(joined["input_ids"]) // LENGTH * LENGTH
        return {k: [t[i : i + LENGTH] for i in range(0, total, LENGTH)] for k, t in joined.items()}

    files = sorted(str(path) for path in (source / "documents").glob("*.parquet"))
    clock = [now()]
    raw = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(output / "cache"))
    clock.append(now())
    tokenized = raw.map(tokenize, batched=True, remove_columns=raw.column_names)
    clock.append(now())
    grouped = tokenized.map(group_texts, batched=True)
    clock.append(now())
    grouped.save_to_disk(str(output / "saved"))
    clock.append(now())
    taken = steps(clock, "read", "tokenize", "group", "save")
    versions = versions_of("datasets", "tokenizers", "transformers")
    return Run(*taken, grouped.num_rows, 0.0, LENGTH, 0.0, versions)


def be_side(side: str, source: Path, output: Path) -> None:
    """What the process of one side does."""
    pin()
    made = run_datasets(source, output) if side == "datasets" else run_ours(source, output, section_of(side))
    (output / "figures.json").write_text(json.dumps(dataclasses.asdict(made)))


def main() -> None:
    """Parse arguments, write the corpus, run the sides in turn, print medians and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="JSONL files with a text column, plain or .gz")
    parser.add_argument("--megabytes", type=float, default=10, help="text to use (default 10)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts (default 3)")
    parser.add_argument("--copies", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--side", choices=("datasets", *OURS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        be_side(given.side, Path(given.text[0]), Path(given.text[1]))
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with tempfile.TemporaryDirectory(prefix="instances-benchmark-") as name:
        folder = Path(name)
        texts = list(read_texts(given.text, int(given.megabytes * 1e6)))
        size = sum(len(t.encode()) for t in texts)
        write_corpus(folder / "in", texts)
        print(f"{size / 1e6:.1f} MB of text, {len(texts):,} documents, length {LENGTH};", end=" ")
        print(f"{os.cpu_count()} cores, one used; load {os.getloadavg()[0]:.1f}; median of {given.rounds}")
        runs: dict[str, list[Run]] = {side: [] for side in ("datasets", *OURS)}
        for _ in range(given.rounds):
            for side, measured in runs.items():
                measured.append(run_side(sys.executable, side, given, folder, __file__))
        speeds = {side: show(side, measured, size) for side, measured in runs.items()}
    compare("doc-sentences", "datasets", speeds)


if __name__ == "__main__":
    main()
