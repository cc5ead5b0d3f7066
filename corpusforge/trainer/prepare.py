"""Everything a run needs before its first step, assembled and checked: data, plan, model shape, device.

Nothing is written here, so ``--dry-run`` stops after it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from corpusforge import errors
from corpusforge.instances.mask_units import find_unit
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.loader.batcher import check_vocabulary, load_specials, make_steps
from corpusforge.loader.corpus import Corpus, open_table
from corpusforge.loader.order import Stream, streams
from corpusforge.loader.packing import BatchSettings, padded_length
from corpusforge.sections import Pretrain
from corpusforge.sections.presets import Preset, find_preset
from corpusforge.shards import Manifest
from corpusforge.trainer.architecture import Architecture, preset_architecture
from corpusforge.trainer.attention import has_flash, kernel_of
from corpusforge.trainer.batches import Batch, to_tensors
from corpusforge.trainer.init_checkpoint import InitCheckpoint, find_init
from corpusforge.trainer.ranks import Ranks, local_device
from corpusforge.trainer.training_plan import Mark, TrainingPlan, training_plan


@dataclass(frozen=True)
class Job:
    """A run that could start. ``dtype``: of autocast, None for plain float32."""

    settings: Pretrain
    seed: int
    instances: Mapping[str, Any]  # the section [instances] with which the data were built
    plan: TrainingPlan
    corpus: Corpus
    heldout: Corpus | None
    specials: Specials
    masker: Masker
    streams: list[Stream]  # the data of each part of the run, in order
    shape: Architecture
    device: torch.device
    dtype: torch.dtype | None
    ranks: Ranks = dataclasses.field(default_factory=Ranks)
    init: InitCheckpoint | None = None  # the run starts with its weights

    def batches(self, step: int) -> list[Batch]:
        """This rank's micro-batches of step ``step``, counted from 0: a function of that number."""
        settings, shape, stream = self.settings, self.shape, self.streams[self.plan.part_of(step)]
        batch_settings = BatchSettings(
            micro_batch_tokens=settings.micro_batch_tokens,
            packing=settings.packing,
            fixed=settings.compile,
            ranks=self.ranks.count,
        )
        how: dict[str, Any] = {"segments": shape.segments > 1, "pairs": shape.pairs, "spans": shape.span_positions}
        masker = self.masker_at(step)
        step_batches = make_steps(self.corpus, stream, [step], batch_settings, masker, self.specials.pad)[0]
        batches = self.ranks.share([to_tensors(batch, **how, fixed=settings.compile) for batch in step_batches])
        return [batch.pinned() for batch in batches] if self.device.type == "cuda" else batches

    def masker_at(self, step: int) -> Masker:
        """What draws the masks of a step: by the settings the data were built with, at the rate of the step."""
        rate, built = self.plan.mask_rate(step), self.masker.settings
        if rate == built.rate:
            return self.masker
        cap = math.ceil(built.max_predictions * rate / built.rate)  # the same share of positions at another rate
        return Masker(self.specials, dataclasses.replace(built, rate=rate, max_predictions=cap), self.seed)

    @property
    def attention(self) -> str:
        """The kernel that attention runs on."""
        if not self.settings.packing:
            return "padded rows"
        return f"packed, {kernel_of(self.device, self.dtype, self.shape.dropout, flash=has_flash(self.device))} kernel"

    def marked(self, mark: Mark) -> Job:
        """The job with one more mark in its plan."""
        plan = self.plan.marked(mark)
        return dataclasses.replace(self, plan=plan, streams=streams(self.corpus, plan.parts, self.seed, self.streams))


def prepare(data_folder: str, settings: Pretrain, *, vocab_folder: str, seed: int = 0) -> Job:
    """Open the data and decide everything. Dynamic masks are drawn by the settings the instances were built with.

    Raises `errors.ManifestInvalid` for unfinished data, `errors.StageMismatch` if vocabulary and instances do not
    match, `errors.RecipeInvalid` for settings that cannot work on this data or machine.
    """
    manifest = Manifest.load(data_folder)
    corpus = open_table(data_folder, manifest, "train")
    specials = load_specials(vocab_folder)
    check_vocabulary(corpus, specials, data_folder, vocab_folder)
    heldout = open_table(data_folder, manifest, "heldout") if manifest.rows.get("heldout") else None
    instances = manifest.recipe.get("instances", {})
    masks = MaskSettings.of(instances)
    plan = training_plan(settings, corpus.longest, masks.rate)
    _check_masks(corpus, plan.preset, settings, masks.unit, data_folder)
    device = choose_device(settings.device)
    longest = padded_length(max(corpus.longest, heldout.longest if heldout else 0))
    shape = preset_architecture(
        plan.preset,
        vocabulary=specials.size,
        padding_id=specials.pad,
        longest=longest,
        pairs=corpus.pair_labels is not None,
        dropout=plan.dropout,
    )
    init = init_of(settings, vocab_folder) if settings.init else None
    return Job(
        settings=settings,
        seed=seed,
        instances=instances,
        plan=plan,
        corpus=corpus,
        heldout=heldout,
        specials=specials,
        masker=Masker(specials, masks, seed),
        streams=streams(corpus, plan.parts, seed),
        shape=init.shape_of(shape, longest) if init else shape,
        init=init,
        device=device,
        dtype=choose_dtype(settings.precision, device),
    )


def _check_masks(corpus: Corpus, preset: Preset, settings: Pretrain, unit: str, data_folder: str) -> None:
    """Check that masks of words have word starts, and that a span boundary head has masks drawn during training."""
    stored = corpus.masked_positions is not None
    if stored and max(settings.mask_rate_start, settings.mask_rate_end) >= 0:
        what, mend = "its masks are stored, so their rate cannot change", "build instances with dynamic masks"
        raise errors.StageMismatch(data_folder, what, mend)
    if preset.has_boundary_head and (unit != "span" or stored):
        what = f"its masks are {f'of the mask unit {unit}' if unit != 'span' else 'stored, without span boundaries'}"
        mend = f"build instances with --mask-unit span and dynamic masks, as {settings.preset} needs them"
        raise errors.StageMismatch(data_folder, what, mend)
    if find_unit(unit).needs_words and not stored and corpus.word_starts is None:
        what = f"mask unit {unit!r} needs word starts, and there are none"
        raise errors.StageMismatch(data_folder, what, "build instances with this mask unit")


def init_of(settings: Pretrain, vocab_folder: str) -> InitCheckpoint:
    """The checkpoint that a run starts from. Raises what `init_checkpoint.find_init` raises."""
    preset, any_shape, any_vocabulary = find_preset(settings.preset), settings.init_shape, settings.init_any_vocabulary
    return find_init(settings.init, preset, vocab_folder, any_shape=any_shape, any_vocabulary=any_vocabulary)


def choose_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device. Raises `errors.RecipeInvalid` if there is no GPU."""
    if name == "cuda" and not torch.cuda.is_available():
        raise errors.RecipeInvalid("pretrain.device", "no GPU that torch can use", "set it to auto or cpu")
    return local_device(torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"))


def choose_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """``auto``, ``fp32`` or ``bf16`` as autocast's dtype; None: no autocast."""
    if precision == "auto":
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if has_bf16 else None
    return torch.bfloat16 if precision == "bf16" else None


def output_folder(output: str, *, resume: bool) -> Path:
    """The folder of a run, created if needed.

    Raises `errors.OutputTaken` if it already holds a run that is not to be resumed.
    """
    folder = Path(output)
    if "://" in output:
        raise errors.RecipeInvalid(output, "checkpoints go to a local disk", "name a local folder and copy it later")
    if not resume and any((folder / "checkpoints").glob("step-*")):
        raise errors.OutputTaken(output, "it holds checkpoints of a run", "pass --resume, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
