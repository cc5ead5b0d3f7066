"""BLiMP: does the model give the grammatical sentence of a minimal pair the higher probability?

67 paradigms of 1,000 pairs (Warstadt et al. 2020, arXiv 1912.00582). An encoder has no sentence probability, so the
score is the pseudo-log-likelihood (Salazar et al. 2020, arXiv 1910.14659): each token masked alone, the log-probability
of the original, summed. Ties count half; the result is the mean over paradigms.
"""

from __future__ import annotations

import json
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from corpusforge import errors
from corpusforge.loader.corpus import flat_positions
from corpusforge.progress import Progress, Silent
from corpusforge.trainer.batches import Batch
from corpusforge.trainer.model import Encoder

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """A minimal pair: ``paradigm`` is BLiMP's UID, ``phenomenon`` its linguistics_term."""

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
                pairs.append(Pair(row["sentence_good"], row["sentence_bad"], row.get("UID") or Path(name).stem, term))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                where, what = f"{path}: {name}: line {number + 1}", f"no minimal pair ({error!r})"
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
            raise errors.InputUnreadable(path, f"no readable archive ({error})", mend) from None
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
    """Accuracies of a model, 0 to 1: ``accuracy`` (mean over paradigms), ``phenomena``, ``paradigms``, ``pairs``."""
    unique = {sentence: n for n, sentence in enumerate(dict.fromkeys(s for p in pairs for s in (p.good, p.bad)))}
    ids = tokenize(model_folder, list(unique), model.shape.longest)
    scores = pseudo_log_likelihoods(
        model, ids, mask_id, batch_tokens=batch_tokens, device=device, dtype=dtype, progress=progress
    )
    hits = defaultdict(list)
    terms: dict[str, str] = {}
    for pair in pairs:
        difference = scores[unique[pair.good]] - scores[unique[pair.bad]]
        hits[pair.paradigm].append(0.5 if difference == 0 else float(difference > 0))
        terms[pair.paradigm] = pair.phenomenon
    paradigms = {name: float(np.mean(values)) for name, values in sorted(hits.items())}
    grouped = defaultdict(list)
    for name, accuracy in paradigms.items():
        grouped[terms[name]].append(accuracy)
    phenomena = {term: float(np.mean(values)) for term, values in sorted(grouped.items())}
    mean = float(np.mean(list(paradigms.values())))
    return {"accuracy": mean, "pairs": len(pairs), "phenomena": phenomena, "paradigms": paradigms}


def tokenize(model_folder: Path, sentences: list[str], longest: int) -> list[list[int]]:
    """Ids of sentences with [CLS] and [SEP], at most ``longest``, by the tokenizer beside the weights."""
    from tokenizers import Tokenizer  # 30 ms that nothing else in this room needs

    try:
        tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    except Exception as error:  # the library raises Exception itself
        what = f"no usable tokenizer.json ({error})"
        raise errors.InputMissing(str(model_folder), what, "name a checkpoint that pretrain wrote") from None
    tokenizer.enable_truncation(longest)
    return [encoding.ids for encoding in tokenizer.encode_batch(sentences)]


@torch.no_grad()
def pseudo_log_likelihoods(
    model: Encoder,
    sentences: Sequence[Sequence[int]],
    mask_id: int,
    *,
    batch_tokens: int,
    device: torch.device,
    dtype: torch.dtype | None = None,
    progress: Progress | None = None,
) -> Scores:
    """For each sentence (ids with [CLS] and [SEP]) the sum of log p(token | all others), in nats: ``[n]``.

    Equal ids are computed once, so equal sentences have exactly equal scores.
    """
    shown = progress or Silent()
    distinct = {ids: n for n, ids in enumerate(dict.fromkeys(tuple(s) for s in sentences))}
    known = list(distinct)
    scores = np.zeros(len(known), np.float64)
    shown.start("pseudo-log-likelihoods", len(known), "sentences")
    for chosen in _groups(known, batch_tokens):
        batch, owner = _masked_one_by_one([known[n] for n in chosen], mask_id, model.shape.padding_id)
        batch = batch.to(device)
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            logits, _ = model(batch.input_ids, batch.segment_ids, batch.is_real, batch.masked)
        found = logits.float().log_softmax(-1).gather(1, batch.labels[:, None])[:, 0]
        # Summed in float64 and in order: two sentences are compared by differences of sums.
        scores[chosen] = np.bincount(owner, found.double().cpu().numpy(), minlength=len(chosen))
        shown.advance(len(chosen))
    shown.finish()
    return scores[[distinct[tuple(s)] for s in sentences]]


def _groups(sentences: Sequence[tuple[int, ...]], budget: int) -> Iterable[list[int]]:
    """Numbers of sentences of about equal length whose masked copies have at most ``budget`` tokens together."""
    order = sorted((n for n, ids in enumerate(sentences) if len(ids) > 2), key=lambda n: -len(sentences[n]))
    group: list[int] = []
    rows = 0
    for n in order:  # a sentence stands for as many rows as it has tokens: the loop is short against the model
        more = len(sentences[n]) - 2
        if group and (rows + more) * len(sentences[group[0]]) > budget:
            yield group
            group, rows = [], 0
        group.append(n)
        rows += more
    if group:
        yield group


def _masked_one_by_one(
    sentences: list[tuple[int, ...]], mask_id: int, padding_id: int
) -> tuple[Batch, npt.NDArray[np.int64]]:
    """One row for each token of each sentence, masked there; and for each row the number of its sentence."""
    lengths = np.array([len(ids) for ids in sentences], np.int64)
    T = int(lengths.max())
    padded = np.full((len(sentences), T), padding_id, np.int64)
    within, owner = flat_positions(lengths)
    padded[owner, within] = np.concatenate([np.array(ids, np.int64) for ids in sentences])
    nth, row_of = flat_positions(lengths - 2)
    input_ids = padded[row_of]
    rows, positions = np.arange(len(row_of)), nth + 1
    labels = input_ids[rows, positions]
    input_ids[rows, positions] = mask_id
    is_real = np.arange(T) < lengths[row_of][:, None]
    batch = Batch(
        input_ids=torch.from_numpy(input_ids),
        segment_ids=torch.zeros(input_ids.shape, dtype=torch.int64),
        is_real=None if is_real.all() else torch.from_numpy(is_real),
        masked=torch.from_numpy(rows * T + positions),
        labels=torch.from_numpy(labels),
        pair_labels=None,
        tokens=int(is_real.sum()),
    )
    return batch, row_of
