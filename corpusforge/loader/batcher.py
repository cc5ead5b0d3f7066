"""The batcher: a folder of instances in, batches of NumPy arrays out, at any position, from any number of workers.

Comes in: what build-instances wrote. Goes out: `Batch`. Decision: a batch is a function of (folder, settings, seed,
position). The state of a loader is the position alone; workers are told apart by which positions they read; dynamic
masks are those of the one mask function, keyed by the seed, the epoch and the instance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corpusforge import errors, shards
from corpusforge.arrays import offsets_of
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.loader.corpus import open_table
from corpusforge.loader.epochs import BatchSettings, Epochs, Extent
from corpusforge.loader.feed import Feed
from corpusforge.loader.folder import check_vocabulary, load_specials, mask_settings
from corpusforge.loader.layout import Batch, lay_out
from corpusforge.loader.rows import draw_masks, gather_whole
from corpusforge.shards import Manifest

MADE_AT_ONCE = {"ngram": 1 << 19, "span": 1 << 19}
"""Tokens of the batches that an iteration makes at once, by mask unit: masks cost less a token for many rows than for
few, those of runs above all. Others: `_A_FEW`."""

_A_FEW = 1 << 17


class Batcher:
    """Batches of a folder of build-instances: the same ones for everyone who opens it with the same settings.

    ``table``: "train" or "heldout"; ``seed``: of the order and of dynamic masks (None: the seed of the folder);
    ``masking``: how dynamic masks are drawn (None: as the folder was built for); ``vocab_folder``: "" for the one
    inside. Can be sent to other processes, which open the folder themselves.

    Raises `errors.ManifestInvalid` for unfinished or damaged folders, `errors.StageMismatch` for others and for
    vocabularies that do not fit, `errors.RecipeInvalid` for settings that cannot work on this folder.
    """

    def __init__(
        self,
        folder: str,
        settings: BatchSettings | None = None,
        *,
        table: str = "train",
        seed: int | None = None,
        masking: MaskSettings | None = None,
        vocab_folder: str = "",
    ) -> None:
        folder = str(folder)
        self._arguments = (folder, settings, table, seed, masking, vocab_folder)
        manifest = Manifest.load(folder)
        if manifest.stage != "build-instances":
            raise errors.StageMismatch(folder, f"holds the output of {manifest.stage}", "name a build-instances folder")
        self.corpus = open_table(folder, manifest, table)
        vocab_folder = vocab_folder or shards.join(folder, "vocab")
        specials = load_specials(vocab_folder)
        check_vocabulary(self.corpus, specials, folder, vocab_folder)
        self.seed = int(manifest.recipe.get("seed", 0)) if seed is None else seed
        self._padding_id = specials.pad
        self._masker = self._make_masker(folder, manifest, specials, masking)
        self._epochs = Epochs(self.corpus, settings or BatchSettings(), self.seed)
        self.settings = self._epochs.settings

    def extent(self, epoch: int = 0) -> Extent:
        """Batches, instances, tokens and padding of an epoch."""
        return self._epochs.extent(epoch)

    def locate(self, position: int) -> tuple[int, int]:
        """The epoch of a position, and the number of its batch in it."""
        return self._epochs.locate(position)

    def begin(self, epoch: int) -> int:
        """The position of the first batch of an epoch."""
        return self._epochs.begin(epoch)

    def batch(self, position: int) -> Batch:
        """The batch at a position, counted from 0 through all epochs."""
        return self.batches([position])[0]

    def batches(self, positions: Sequence[int]) -> list[Batch]:
        """The batches at some positions, made at once: faster than one by one, and the same."""
        if min(positions, default=0) < 0:
            raise IndexError(f"no batch at position {min(positions)}: the first is 0")
        chosen = [self._epochs.choose(position) for position in positions]
        counts = [len(some.instances) for some in chosen]
        needs_words = self._masker is not None and self._masker.needs_words
        everyone = np.concatenate([some.instances for some in chosen])
        rows = gather_whole(self.corpus, everyone, word_starts=needs_words)
        if self._masker is not None:
            rows = draw_masks(rows, self._masker, np.repeat(np.array([c.epoch for c in chosen], np.uint64), counts))
        kind: type[Any] = np.int32 if self.settings.bits == 32 else np.int64
        made = []
        for position, some, part in zip(positions, chosen, rows.parts(offsets_of(np.array(counts))), strict=True):
            laid = lay_out(part, some.members, some.width, self._padding_id, kind)
            made.append(dataclasses.replace(laid, position=position, epoch=some.epoch))
        return made

    def iterate(
        self, position: int = 0, stop: int | None = None, *, worker: int = 0, workers: int = 1, threads: int = 1
    ) -> Iterator[Batch]:
        """Batches from ``position`` on, below ``stop`` (None: without end), made ahead by ``threads`` threads.

        ``worker`` of ``workers``: every ``workers``-th position, from ``position + worker`` on; together they are all,
        each once. ``threads`` 0: made when asked for.
        """
        unit = self._masker.settings.unit if self._masker else ""
        step, first = max(1, MADE_AT_ONCE.get(unit, _A_FEW) // self.settings.tokens), position + worker

        def make(number: int) -> list[Batch]:
            begin = first + number * step * workers
            end = begin + step * workers
            return self.batches(range(begin, end if stop is None else min(end, stop), workers))

        left = None if stop is None else max(0, -(-(stop - first) // workers))
        chunks = None if left is None else -(-left // step)
        if not threads:
            number = 0
            while chunks is None or number < chunks:
                yield from make(number)
                number += 1
            return
        with Feed(make, 0, chunks, threads=threads, ahead=threads + 1) as feed:
            for some in feed:
                yield from some

    def _make_masker(
        self, folder: str, manifest: Manifest, specials: Specials, masking: MaskSettings | None
    ) -> Masker | None:
        """What draws masks; None where they are stored."""
        if self.corpus.masked_positions is not None:
            if masking is not None:
                mend = "leave masking out, or build instances with dynamic masks"
                raise errors.RecipeInvalid("masking", f"the masks of {folder} are stored with it", mend)
            return None
        masker = Masker(specials, masking or mask_settings(manifest.recipe.get("instances", {})), self.seed)
        if masker.needs_words and self.corpus.word_starts is None:
            what = f"mask unit {masker.settings.unit!r} needs word starts, and {folder} has none"
            raise errors.StageMismatch(folder, what, "build instances with this mask unit")
        return masker

    def __reduce__(self) -> Any:
        return _reopened, self._arguments


def _reopened(
    folder: str,
    settings: BatchSettings | None,
    table: str,
    seed: int | None,
    masking: MaskSettings | None,
    vocab_folder: str,
) -> Batcher:
    return Batcher(folder, settings, table=table, seed=seed, masking=masking, vocab_folder=vocab_folder)
