"""Masks while batches are made: whole words and spans against the collators of transformers.

    python benchmarks/masks.py --tokens 2000000 --length 128

Rows of random ids with the word lengths of English WordPiece; both sides mask the same rows. The collators also pad
and make tensors; ours returns arrays. Alternating, CPU time, medians of ``--rounds``. The collators need
`transformers` and `torch`; without them only ours is measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from corpusforge import seeds
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.sections.instances import MASK_UNITS
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.wordpiece import arrange

SIZE = 30_528
BATCH = 64  # rows given to a collator at once


def rows(tokens: int, length: int) -> tuple[Any, Any, Any, Any]:
    """Flat ids, offsets, keys, word starts: 30 % of tokens continue a word, as in English with 30,000 entries."""
    rng = np.random.default_rng(0)
    count = tokens // length
    ids = rng.integers(2000, SIZE, (count, length)).astype(np.uint16)
    starts = rng.random((count, length)) > 0.3
    starts[:, :2] = starts[:, -1:] = True
    ids[starts] = 200 + ids[starts] % 15_000
    ids[~starts] = 15_300 + ids[~starts] % 15_000
    ids[:, 0], ids[:, -1] = 101, 102
    keys = seeds.instance_keys(np.arange(count, dtype=np.uint64), np.zeros(count, np.uint32))
    return ids.ravel(), np.arange(count + 1) * length, keys, starts.ravel()


def collators(ids: Any, starts: Any, length: int) -> dict[str, Callable[[], Any]]:
    """The peers, on the first twentieth of the rows; {} where they are not installed."""
    try:
        import torch
        import transformers
    except ImportError:
        return {}
    torch.set_num_threads(1)
    pieces = [f"w{k}" if k < 15_100 else f"##p{k}" for k in range(SIZE - 104)]
    vocab = arrange(pieces, SIZE, 99, UNCASED)
    tokenizer = transformers.BertTokenizerFast(tokenizer_object=vocab.library_tokenizer())
    count = max(len(ids) // length // 20, BATCH)
    some = ids.reshape(-1, length)[:count].astype(np.int64).tolist()
    places = _characters(starts.reshape(-1, length)[:count]).tolist()
    features = [{"input_ids": row, "offset_mapping": place} for row, place in zip(some, places, strict=True)]
    # transformers 5 has whole words as an option of the first; 4 has a class of their own.
    whole = getattr(transformers, "DataCollatorForWholeWordMask", None)
    plain = transformers.DataCollatorForLanguageModeling
    kinds = {
        "DataCollatorForLanguageModeling": (plain, {}),
        "DataCollatorForWholeWordMask": (whole, {}) if whole else (plain, {"whole_word_mask": True}),
    }

    def made(kind: tuple[Any, dict[str, Any]]) -> Callable[[], int]:
        collate = kind[0](tokenizer=tokenizer, mlm_probability=0.15, **kind[1])
        names = ("input_ids", "offset_mapping") if kind[1] else ("input_ids",)
        rows = [{name: feature[name] for name in names} for feature in features]
        batches = [rows[k : k + BATCH] for k in range(0, len(rows), BATCH)]
        return lambda: sum(collate([dict(r) for r in batch])["input_ids"].numel() for batch in batches)

    return {name: made(kind) for name, kind in kinds.items()}


def _characters(starts: Any) -> Any:
    """Where tokens of three characters each begin and end in their text: a space before each word; specials: 0, 0."""
    begins = np.cumsum(starts, 1) + 3 * np.arange(starts.shape[1])
    places = np.stack((begins, begins + 3), 2)
    places[:, [0, -1]] = 0
    return places


def ours(ids: Any, offsets: Any, keys: Any, starts: Any) -> dict[str, Callable[[], Any]]:
    """One call a unit, all rows."""
    specials = Specials(SIZE, pad=0, unk=100, cls=101, sep=102, mask=103, unused=tuple(range(1, 100)))

    def made(unit: str) -> Callable[[], int]:
        masker = Masker(specials, MaskSettings(unit=unit), 0)
        return lambda: len(masker(ids, offsets, keys, 0, starts).input_ids)

    return {unit: made(unit) for unit in MASK_UNITS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=2_000_000)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    data = rows(given.tokens, given.length)
    runs = {**ours(*data), **collators(data[0], data[3], given.length)}
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(given.rounds):
        for name, run in runs.items():
            begin = time.process_time()
            count = run()
            speeds[name].append(count / (time.process_time() - begin) / 1e6)
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in ("numpy", "transformers") if _has(p))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}")
    print(f"{len(data[0]):,} tokens in rows of {given.length}, CPU time of one thread, median of {given.rounds}")
    for name, measured in speeds.items():
        print(f"{name:34} {statistics.median(measured):8.2f} M tokens/s")


def _has(package: str) -> bool:
    try:
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
