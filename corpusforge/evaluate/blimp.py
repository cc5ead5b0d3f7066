"""BLiMP: does the model give the grammatical sentence of a minimal pair the higher probability?

67 paradigms of 1,000 pairs (Warstadt et al. 2020, arXiv 1912.00582). An encoder has no sentence probability; the score
is a pseudo-log-likelihood, in two forms (`likelihood`). Ties count half; the result is the mean over paradigms.
"""

from __future__ import annotations

import json
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from corpusforge import errors
from corpusforge.arrays import F64
from corpusforge.evaluate.likelihood import pseudo_log_likelihoods, tokenize
from corpusforge.progress import Progress
from corpusforge.trainer.model import Encoder

PAPER_PHENOMENA = {"s-selection": "argument_structure"}
"""Terms of the data that are not in the paper's table 4, and their phenomenon there."""


@dataclass(frozen=True)
class Pair:
    """A minimal pair: ``paradigm`` is BLiMP's UID, ``phenomenon`` one of the paper's twelve."""

    good: str
    bad: str
    paradigm: str
    phenomenon: str


def read_pairs(path: str, limit: int) -> list[Pair]:
    """The first ``limit`` pairs (0: all) of each paradigm: a folder of .jsonl files, or a .tar.gz of them.

    Raises `errors.InputMissing` or `errors.InputUnreadable`.
    """
    pairs = []
    for name, lines in _files(path):
        for number, line in enumerate(lines):
            if limit and number >= limit:
                break
            try:
                row = json.loads(line)
                term = row.get("linguistics_term") or row.get("phenomenon") or "unknown"
                term = PAPER_PHENOMENA.get(term, term)
                pairs.append(Pair(row["sentence_good"], row["sentence_bad"], row.get("UID") or Path(name).stem, term))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                where, what = f"{path}: {name}: line {number + 1}", f"not a minimal pair ({error!r})"
                raise errors.InputUnreadable(where, what, "each line needs sentence_good and sentence_bad") from None
    if not pairs:
        raise errors.InputMissing(path, "no pairs in it", "name BLiMP's folder of .jsonl files or its .tar.gz")
    return pairs


def _files(path: str) -> Iterator[tuple[str, list[bytes]]]:
    mend = "set evaluate.blimp_data to BLiMP's folder of .jsonl files or its .tar.gz"
    if Path(path).is_dir():
        for file in sorted(Path(path).rglob("*.jsonl")):
            yield file.name, file.read_bytes().splitlines()
    elif Path(path).is_file():
        try:
            with tarfile.open(path) as archive:
                members = [m for m in archive if m.isfile() and m.name.endswith(".jsonl")]
                for member in sorted(members, key=lambda m: m.name):
                    content = archive.extractfile(member)
                    if content:
                        yield member.name, content.read().splitlines()
        except (tarfile.TarError, EOFError, OSError) as error:
            raise errors.InputUnreadable(path, f"not a readable archive ({error})", mend) from None
    else:
        raise errors.InputMissing(path or "evaluate.blimp_data", "no such file or folder", mend)


def blimp(
    model: Encoder,
    model_folder: Path,
    mask_id: int,
    pairs: Sequence[Pair],
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Accuracies of a model, 0 to 1: ``accuracy`` (mean over paradigms), ``phenomena``, ``paradigms`` and ``ties`` of
    the original form, the same under ``word_l2r``, and ``pairs``."""
    unique = {sentence: n for n, sentence in enumerate(dict.fromkeys(s for p in pairs for s in (p.good, p.bad)))}
    sentences = tokenize(model_folder, list(unique), model.shape.longest)
    scores = pseudo_log_likelihoods(
        model, sentences, mask_id, batch_tokens=batch_tokens, device=device, dtype=dtype, progress=progress
    )
    good = np.array([unique[pair.good] for pair in pairs])
    bad = np.array([unique[pair.bad] for pair in pairs])
    forms = {form: _accuracies(pairs, values[good] - values[bad]) for form, values in scores.items()}
    return {"pairs": len(pairs), **forms["original"], "word_l2r": forms["word_l2r"]}


def _accuracies(pairs: Sequence[Pair], differences: F64) -> dict[str, Any]:
    """Accuracies of one form. ``differences``: score of the good sentence minus that of the bad one, ``[pairs]``."""
    right = np.where(differences == 0, 0.5, differences > 0)
    names, of_pair = np.unique([pair.paradigm for pair in pairs], return_inverse=True)
    means = np.bincount(of_pair, right) / np.bincount(of_pair)
    paradigms = dict(zip(names.tolist(), means.tolist(), strict=True))
    grouped = defaultdict(list)
    for paradigm, phenomenon in {pair.paradigm: pair.phenomenon for pair in pairs}.items():
        grouped[phenomenon].append(paradigms[paradigm])
    return {
        "accuracy": float(means.mean()),
        "ties": float((differences == 0).mean()),
        "phenomena": {name: float(np.mean(values)) for name, values in sorted(grouped.items())},
        "paradigms": paradigms,
    }
