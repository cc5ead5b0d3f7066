"""Everything a run needs before its first step, put together and checked.

Comes in: the folder of build-instances, the vocabulary's folder, settings. Goes out: a `Job`: data, model shape,
device. Nothing is written here, so ``--dry-run`` stops behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from corpusforge import errors
from corpusforge.instances.masking import Masker, Specials
from corpusforge.loader.corpus import Corpus, open_table
from corpusforge.loader.folder import check_vocabulary, load_specials
from corpusforge.loader.layout import padded_length
from corpusforge.loader.order import Stream, streams
from corpusforge.loader.rows import read_step
from corpusforge.shards import Manifest
from corpusforge.trainer.batches import Batch, make_batches
from corpusforge.trainer.model import Architecture
from corpusforge.trainer.settings import Resolved, Settings, resolve

POSITIONS = 512
"""Positions of the published models; more where instances are longer: as many as their rows padded."""


@dataclass(frozen=True)
class Job:
    """A run that could begin. ``dtype``: of autocast, None for plain float32."""

    settings: Settings
    resolved: Resolved
    corpus: Corpus
    heldout: Corpus | None
    specials: Specials
    masker: Masker
    streams: list[Stream]
    shape: Architecture
    device: torch.device
    dtype: torch.dtype | None

    def batches(self, step: int) -> list[Batch]:
        """The micro-batches of step ``step``, counted from 0: a function of that number."""
        stream = self.streams[self.resolved.part_of(step)]
        rows = read_step(self.corpus, stream, step, self.masker)
        budget, padding_id = self.settings.micro_batch_tokens, self.specials.pad
        made = make_batches(rows, budget, padding_id, segments=self.shape.segments > 1, pairs=self.shape.pairs)
        return [batch.pinned() for batch in made] if self.device.type == "cuda" else made


def prepare(data_folder: str, settings: Settings, *, vocab_folder: str) -> Job:
    """Open the data and decide everything.

    Raises `errors.ManifestInvalid` for unfinished data, `errors.StageMismatch` where vocabulary and instances do not
    fit, `errors.RecipeInvalid` for settings that cannot work on this data or machine.
    """
    manifest = Manifest.load(data_folder)
    corpus = open_table(data_folder, manifest, "train")
    specials = load_specials(vocab_folder)
    check_vocabulary(corpus, specials, data_folder, vocab_folder)
    held = open_table(data_folder, manifest, "heldout") if manifest.rows.get("heldout") else None
    resolved = resolve(settings, corpus.longest)
    device = choose_device(settings.device)
    return Job(
        settings=settings,
        resolved=resolved,
        corpus=corpus,
        heldout=held,
        specials=specials,
        masker=Masker(specials, settings.masking, settings.seed),
        streams=streams(corpus, resolved.parts, settings.seed),
        shape=_shape(resolved, corpus, held, specials),
        device=device,
        dtype=choose_dtype(settings.precision, device),
    )


def _shape(resolved: Resolved, corpus: Corpus, held: Corpus | None, specials: Specials) -> Architecture:
    preset, longest = resolved.preset, max(corpus.longest, held.longest if held else 0)
    is_bert = preset.family == "bert"
    # RoBERTa's table has a row for padding and those before it, which no token uses.
    positions = padded_length(max(POSITIONS, longest)) + (0 if is_bert else specials.pad + 1)
    return Architecture(
        family=preset.family,
        layers=preset.layers,
        width=preset.width,
        heads=preset.heads,
        inner=preset.inner,
        vocabulary=specials.size,
        positions=positions,
        segments=2 if is_bert else 1,
        epsilon=preset.epsilon,
        dropout=resolved.dropout,
        padding_id=specials.pad,
        pairs=is_bert and corpus.pair_labels is not None,
    )


def choose_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device. Raises `errors.RecipeInvalid` where there is no GPU to use."""
    if name == "cuda" and not torch.cuda.is_available():
        raise errors.RecipeInvalid("pretrain.device", "no GPU that torch can use", "set it to auto or cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def choose_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """``auto``, ``fp32`` or ``bf16`` as autocast's type; None: no autocast."""
    if precision == "auto":
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if has_bf16 else None
    return torch.bfloat16 if precision == "bf16" else None


def output_folder(output: str, *, resume: bool) -> Path:
    """The folder of a run, made if need be.

    Raises `errors.OutputTaken` where it holds a run already that is not to be resumed.
    """
    folder = Path(output)
    if "://" in output:
        raise errors.RecipeInvalid(output, "checkpoints go to a local disk", "name a local folder and copy it later")
    if not resume and any((folder / "checkpoints").glob("step-*")):
        raise errors.OutputTaken(output, "it holds checkpoints of a run", "pass --resume, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
