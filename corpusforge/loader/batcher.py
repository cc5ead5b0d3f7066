"""The batcher: the micro-batches of every step of a folder of instances, for the trainer and for other frameworks.

A step is a function of (folder, settings, seed, number). So the number of the next step is all the state there is:
workers differ in which steps they make, and dynamic masks are those of the one mask function, keyed by the seed, the
epoch and the instance. Batches are NumPy arrays; the trainer makes tensors of the same ones.

Batches are made ahead in threads, not in worker processes: the shards hold token ids already, so a batch costs NumPy,
which lets other threads run, a few milliseconds.
"""

from __future__ import annotations

import copy
import functools
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import numpy as np

from corpusforge import errors, shards
from corpusforge.arrays import I64
from corpusforge.instances.mask_units import find_unit
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.loader.corpus import Chunks, Corpus, cut_to_length, draw_masks, gather, open_table
from corpusforge.loader.folder import EpochSize, check_vocabulary, load_specials, mask_settings, size_of
from corpusforge.loader.layout import Batch, lay_out
from corpusforge.loader.order import ENDLESS, Part, Stream, streams
from corpusforge.loader.packing import BatchSettings, Group
from corpusforge.shards import Manifest

T = TypeVar("T")

Masking = MaskSettings | Callable[[int], MaskSettings]
"""How dynamic masks are drawn: the same in every step, or a function of the step."""


class Steps:
    """The micro-batches of every step over a table of instances.

    ``parts``: of the run, in order; ``masking``: None where masks are stored; ``seed``: of the order and of dynamic
    masks.
    """

    def __init__(
        self,
        corpus: Corpus,
        specials: Specials,
        settings: BatchSettings,
        parts: Sequence[Part],
        masking: Masking | None,
        seed: int,
    ) -> None:
        self.corpus, self.specials, self.settings, self.seed = corpus, specials, settings, seed
        self.parts, self.masking = tuple(parts), masking
        self.streams = streams(corpus, self.parts, seed)
        self._masker = functools.lru_cache(maxsize=8)(functools.partial(Masker, specials, seed=seed))

    def planned(self, parts: Sequence[Part], masking: Masking | None) -> Steps:
        """The same order under another plan of steps."""
        other = copy.copy(self)
        other.parts, other.masking = tuple(parts), masking
        other.streams = streams(self.corpus, other.parts, self.seed, before=self.streams)
        return other

    def batched(self, settings: BatchSettings) -> Steps:
        """The same steps in other micro-batches; ``settings.batch_tokens`` and ``length`` are those of the parts."""
        other = copy.copy(self)
        other.settings = settings
        return other

    def part_of(self, step: int) -> int:
        """Number of the part that a step belongs to; of steps after the end, the last."""
        return next((k for k, part in enumerate(self.parts) if step < part.stop), len(self.parts) - 1)

    def step(self, step: int) -> list[Batch]:
        """The micro-batches of a step, counted from 0 through all epochs."""
        return self.steps([step])[0]

    def steps(self, steps: Sequence[int]) -> list[list[Batch]]:
        """The micro-batches of some steps, made at once: faster than one by one, and the same."""
        if min(steps, default=0) < 0:
            raise IndexError(f"no step {min(steps)}: the first is 0")

        def kind(step: int) -> tuple[int, MaskSettings | None]:
            masking = self.masking(step) if callable(self.masking) else self.masking
            return self.part_of(step), masking

        made: list[list[Batch]] = []
        for (part, masking), some in itertools.groupby(steps, kind):
            masker = None if masking is None else self._masker(settings=masking)
            made += self._made(list(some), self.streams[part], masker)
        return made

    def _made(self, steps: list[int], stream: Stream, masker: Masker | None) -> list[list[Batch]]:
        reads = [stream.step(step) for step in steps]
        chosen = np.concatenate([some for read in reads for _, some in read])
        epochs = np.concatenate([np.full(len(some), epoch) for read in reads for epoch, some in read])
        groups: list[Group] = []
        counts, first = [], 0
        for read in reads:
            stop = first + sum(len(some) for _, some in read)
            own = self.settings.groups(stream.chunks.lengths[chosen[first:stop]].astype(np.int64))
            groups += [group._replace(rows=group.rows + first) for group in own]
            counts.append(len(own))
            first = stop
        places = [(step, k) for step, count in zip(steps, counts, strict=True) for k in range(count)]
        kind = np.int32 if self.settings.bits == 32 else np.int64
        batches = iter(
            make_batches(
                self.corpus, stream.chunks, chosen, epochs, groups, masker, self.specials.pad, kind=kind, places=places
            )
        )
        return [list(itertools.islice(batches, count)) for count in counts]

    def iterate(
        self, start: int = 0, stop: int | None = None, *, worker: int = 0, workers: int = 1, threads: int = 1
    ) -> Iterator[list[Batch]]:
        """The micro-batches of the steps from ``start`` on, below ``stop`` (None: to the end of the last part), made
        ahead by ``threads`` threads.

        ``worker`` of ``workers``: every ``workers``-th step, from ``start + worker`` on; together they are all, each
        once. ``threads`` 0: made on request.
        """
        masking = self.masking(start) if callable(self.masking) else self.masking or MaskSettings()
        # Masks cost less a token for many rows than for few, those of runs above all.
        each, first = max(1, find_unit(masking.unit).tokens_at_once // self.parts[0].batch_tokens), start + worker
        last = self.parts[-1].stop if stop is None else stop

        def make(number: int) -> list[list[Batch]]:
            begin = first + number * each * workers
            return self.steps(range(begin, min(begin + each * workers, last), workers))

        chunks = -(-max(0, -(-(last - first) // workers)) // each)
        if not threads:
            for number in range(chunks):
                yield from make(number)
            return
        with Feed(make, 0, chunks, threads=threads, ahead=threads + 1) as feed:
            for some in feed:
                yield from some

    def begin(self, epoch: int) -> int:
        """The step that reads the first token of an epoch, which may be the last step of the epoch before too."""
        return self._stream_of(epoch).begin(epoch)

    def epoch_size(self, epoch: int = 0) -> EpochSize:
        """Steps, instances, tokens and padding of an epoch."""
        return size_of(self._stream_of(epoch), self.settings, epoch)

    def _stream_of(self, epoch: int) -> Stream:
        return next(stream for stream in reversed(self.streams) if stream.first_epoch <= epoch)

    def frozen(self, tokens: int = 0) -> Iterator[Batch]:
        """Padded batches of each instance once, under masks that never change: `frozen_batches`."""
        masker = None
        if self.masking is not None:
            masker = self._masker(settings=self.masking(0) if callable(self.masking) else self.masking)
        budget, length = self.settings.micro_batch_tokens, self.parts[-1].length
        return frozen_batches(self.corpus, masker, length, budget, self.specials.pad, tokens=tokens)


class Batcher(Steps):
    """The steps of a folder of build-instances: the same ones for everyone who opens it with the same settings.

    ``table``: "train" or "heldout"; ``seed``: of the order and of dynamic masks (None: the seed of the folder);
    ``masking``: how dynamic masks are drawn (None: as the folder was built for); ``vocab_folder``: "" for the one
    inside; ``parts``: of a run, each with its own length and tokens a step, instead of the two of ``settings``. Can be
    sent to other processes, which open the folder themselves.

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
        masking: Masking | None = None,
        vocab_folder: str = "",
        parts: Sequence[Part] = (),
    ) -> None:
        folder = str(folder)
        self._arguments = (folder, settings, table, seed, masking, vocab_folder, tuple(parts))
        manifest = Manifest.load(folder)
        if manifest.stage != "build-instances":
            raise errors.StageMismatch(folder, f"holds the output of {manifest.stage}", "name a build-instances folder")
        corpus = open_table(folder, manifest, table)
        vocab_folder = vocab_folder or shards.join(folder, "vocab")
        specials = load_specials(vocab_folder)
        check_vocabulary(corpus, specials, folder, vocab_folder)
        settings = (settings or BatchSettings()).resolved(corpus.longest)
        parts = parts or [Part(0, ENDLESS, settings.length, settings.batch_tokens)]
        for part in parts:
            if part.tokens_before(part.start + 1) < min(part.length, corpus.longest):
                what = f"step {part.start} does not hold an instance of {part.length} tokens"
                raise errors.RecipeInvalid("parts", what, "raise its batch_tokens")
        if corpus.masked_positions is not None:
            if masking is not None:
                mend = "leave masking out, or build instances with dynamic masks"
                raise errors.RecipeInvalid("masking", f"the masks of {folder} are stored with it", mend)
        else:
            masking = masking or mask_settings(manifest.recipe.get("instances", {}))
            unit = (masking(0) if callable(masking) else masking).unit
            if find_unit(unit).needs_words and corpus.word_starts is None:
                what = f"mask unit {unit!r} needs word starts, and {folder} has none"
                raise errors.StageMismatch(folder, what, "build instances with this mask unit")
        seed = int(manifest.recipe.get("seed", 0)) if seed is None else seed
        super().__init__(corpus, specials, settings, parts, masking, seed)

    def __reduce__(self) -> Any:
        return _opened, self._arguments


def _opened(folder: str, settings: Any, table: str, seed: Any, masking: Any, vocab_folder: str, parts: Any) -> Batcher:
    return Batcher(folder, settings, table=table, seed=seed, masking=masking, vocab_folder=vocab_folder, parts=parts)


def make_batches(
    corpus: Corpus,
    chunks: Chunks,
    chosen: I64,
    epochs: I64,
    groups: Sequence[Group],
    masker: Masker | None,
    padding_id: int,
    *,
    kind: type[Any] = np.int64,
    places: Sequence[tuple[int, int]] = (),
) -> list[Batch]:
    """Read chunks, mask them and lay them out.

    ``chosen``: numbers of chunks; ``epochs``: the epoch of each; ``groups``: how they are batched; ``masker``: None
    where masks are stored; ``places``: the step of each group, and its number in that.
    """
    order = np.concatenate([group.rows for group in groups])
    epochs = epochs[order]
    rows = gather(corpus, chunks, chosen[order])
    if masker is not None:
        rows = draw_masks(rows, masker, epochs)
    bounds = np.cumsum([0, *(len(group.rows) for group in groups)])
    made = []
    for k, (group, part) in enumerate(zip(groups, rows.parts(bounds), strict=True)):
        step, number = places[k] if places else (0, k)
        own = epochs[bounds[k] : bounds[k + 1]]
        made.append(lay_out(part, group.members, group.width, padding_id, kind, epochs=own, step=step, number=number))
    return made


def frozen_batches(
    corpus: Corpus, masker: Masker | None, length: int, budget: int, padding_id: int, *, tokens: int = 0
) -> Iterator[Batch]:
    """Padded batches of ``budget`` tokens over the instances of copy 0, each once, at most ``length`` tokens of each.

    Instances come in the order of their keys; masks are the stored ones, else those of epoch 0: so a loss over these
    batches is the same for the same weights whenever it is measured. ``tokens``: stop after about so many (0: read
    all).
    """
    chunks, settings = cut_to_length(corpus, length), BatchSettings(micro_batch_tokens=budget)
    chosen = np.argsort(chunks.keys, kind="stable")
    chosen = chosen[corpus.copies[chunks.rows[chosen]] == 0]
    ends = np.cumsum(chunks.lengths[chosen])
    if tokens:
        chosen = chosen[: int(np.searchsorted(ends, tokens)) + 1]
    windows = ends[: len(chosen)] // (8 * budget)  # rows are sorted by length within so many tokens
    for some in np.split(chosen, np.flatnonzero(np.diff(windows)) + 1):
        if len(some):
            groups = settings.groups(chunks.lengths[some].astype(np.int64))
            masked = masker if corpus.masked_positions is None else None
            yield from make_batches(corpus, chunks, some, np.zeros_like(some), groups, masked, padding_id)


AHEAD = 2
"""Results prepared in advance by one thread."""


class Feed(Generic[T]):
    """``make(start), make(start + 1), ...`` below ``stop`` (None: without end), in order. A context manager."""

    def __init__(
        self,
        make: Callable[[int], T],
        start: int,
        stop: int | None,
        *,
        threads: int = 1,
        ahead: int = AHEAD,
    ) -> None:
        self.waited = 0.0  # seconds the consumer waited in total
        self._make, self._number, self._stop = make, start, stop
        self._threads, self._ahead = threads, max(ahead, threads)
        self._waiting: deque[Future[T]] = deque()

    def __iter__(self) -> Iterator[T]:
        while self._waiting:
            yield self.next()

    def next(self) -> T:
        """The next result, IndexError after the last one; raises what making it raised."""
        began = time.perf_counter()
        try:
            return self._waiting.popleft().result()
        finally:
            self.waited += time.perf_counter() - began
            self._submit()

    @property
    def next_number(self) -> int:
        """The first number that nobody has begun to make."""
        return self._number

    def _submit(self) -> None:
        while len(self._waiting) < self._ahead and (self._stop is None or self._number < self._stop):
            self._waiting.append(self._pool.submit(self._make, self._number))
            self._number += 1

    def __enter__(self) -> Feed[T]:
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="feed")
        self._submit()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
