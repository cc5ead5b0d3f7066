"""The batcher: a folder of instances in, the micro-batches of any step out.

A step is a function of (folder, settings, seed, number). So the number of the next step is all the state there is:
workers differ in which steps they make, and dynamic masks are those of the one mask function, keyed by the seed, the
epoch and the instance. Masks are drawn as the instances were built for unless the caller chooses others, so a loader on
a fresh machine needs the folder alone. Batches are NumPy arrays; the trainer makes tensors of the same ones.

Batches are made ahead in threads, not in worker processes: the shards hold token ids already, so a batch costs a few
milliseconds of NumPy, which lets other threads run.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from corpusforge import errors, shards
from corpusforge.arrays import I64
from corpusforge.instances.mask_units import find_unit
from corpusforge.instances.masking import Masker, MaskSettings, Specials
from corpusforge.loader.corpus import Chunks, Corpus, Ragged, cut_to_length, draw_masks, gather, open_table
from corpusforge.loader.layout import Batch, lay_out
from corpusforge.loader.order import ENDLESS, Part, Stream
from corpusforge.loader.packing import BatchSettings, Group
from corpusforge.shards import Manifest
from corpusforge.tokens.families import load_vocab

SAMPLED_STEPS = 64
"""The padding of an epoch is measured in this many of its steps, the first ones."""

T = TypeVar("T")


class Batcher:
    """The steps of a folder of build-instances: the same ones for everyone who opens it with the same settings.

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
        options = {"table": table, "seed": seed, "masking": masking, "vocab_folder": vocab_folder}
        self._reopen: tuple[Callable[..., Batcher], tuple[Any, ...]]
        self._reopen = functools.partial(Batcher, **options), (folder, settings)  # type: ignore[arg-type]
        manifest = Manifest.load(folder)
        if manifest.stage != "build-instances":
            raise errors.StageMismatch(folder, f"holds the output of {manifest.stage}", "name a build-instances folder")
        self.corpus = open_table(folder, manifest, table)
        vocab_folder = vocab_folder or shards.join(folder, "vocab")
        self.specials = load_specials(vocab_folder)
        check_vocabulary(self.corpus, self.specials, folder, vocab_folder)
        self.seed = int(manifest.recipe.get("seed", 0)) if seed is None else seed
        self.settings = (settings or BatchSettings()).resolved(self.corpus.longest)
        self._masker: Masker | None = None
        if self.corpus.masked_positions is None:
            masking = masking or MaskSettings.of(manifest.recipe.get("instances", {}))
            self._masker = Masker(self.specials, masking, self.seed)
            if self._masker.unit.needs_words and self.corpus.word_starts is None:
                what = f"mask unit {masking.unit!r} needs word starts, and {folder} has none"
                raise errors.StageMismatch(folder, what, "build instances with this mask unit")
        elif masking is not None:
            mend = "leave masking out, or build instances with dynamic masks"
            raise errors.RecipeInvalid("masking", f"the masks of {folder} are stored with it", mend)
        part = Part(0, ENDLESS, self.settings.length, self.settings.batch_tokens)
        self._stream = Stream(self.corpus, part, 0, self.seed, 0)

    def __reduce__(self) -> Any:
        return self._reopen

    def step(self, step: int) -> list[Batch]:
        """The micro-batches of a step, counted from 0 through all epochs."""
        return self.steps([step])[0]

    def steps(self, steps: Sequence[int]) -> list[list[Batch]]:
        """The micro-batches of several steps, made at once: faster than one by one, and the same."""
        if min(steps, default=0) < 0:
            raise IndexError(f"no step {min(steps)}: the first is 0")
        return make_steps(self.corpus, self._stream, steps, self.settings, self._masker, self.specials.pad)

    def iterate(
        self, start: int = 0, stop: int | None = None, *, worker: int = 0, workers: int = 1, threads: int = 1
    ) -> Iterator[list[Batch]]:
        """The micro-batches of the steps from ``start`` on, below ``stop`` (None: without end), made ahead by
        ``threads`` threads.

        ``worker`` of ``workers``: every ``workers``-th step, from ``start + worker`` on; together they are all, each
        once. ``threads`` 0: made on request.
        """
        # Masks cost less a token for many rows than for few, those of runs above all.
        tokens_at_once = (self._masker.unit if self._masker else find_unit("token")).tokens_at_once
        each, first = max(1, tokens_at_once // self.settings.batch_tokens), start + worker
        last = ENDLESS if stop is None else stop

        def make(number: int) -> list[list[Batch]]:
            begin = first + number * each * workers
            return self.steps(range(begin, min(begin + each * workers, last), workers))

        calls = -(-max(0, -(-(last - first) // workers)) // each)
        if not threads:
            for number in range(calls):
                yield from make(number)
            return
        with Feed(make, 0, calls, threads=threads) as feed:
            for steps in feed:
                yield from steps

    def begin(self, epoch: int) -> int:
        """The step that reads the first token of an epoch, which may be the last step of the epoch before too."""
        return self._stream.begin(epoch)

    def epoch_size(self, epoch: int = 0) -> EpochSize:
        """Steps, instances, tokens and padding of an epoch."""
        return _size_of(self._stream, self.settings, epoch)

    def frozen(self) -> Iterator[Batch]:
        """Padded batches of each instance once, under masks that never change: `frozen_batches`."""
        budget, length = self.settings.micro_batch_tokens, self.settings.length
        return frozen_batches(self.corpus, self._masker, length, budget, self.specials.pad)


def load_specials(vocab_folder: str) -> Specials:
    """The special ids of a vocabulary folder."""
    return Specials.of(load_vocab(vocab_folder))


def check_vocabulary(corpus: Corpus, specials: Specials, data_folder: str, vocab_folder: str) -> None:
    """Look at up to a thousand instances: ids inside the vocabulary, [CLS] first, [SEP] last.

    Raises `errors.StageMismatch` if they do not fit.
    """
    rows = np.unique(np.linspace(0, len(corpus) - 1, 1000).astype(np.int64))
    ids = corpus.ids.whole(rows)
    lengths = corpus.lengths[rows]
    ends = np.cumsum(lengths) - 1
    fits = (ids[ends - lengths + 1] == specials.cls).all() and (ids[ends] == specials.sep).all()
    if fits and ids.max() < specials.size:
        return
    what = f"instances do not begin and end with the [CLS] and [SEP] of the vocabulary {vocab_folder}"
    raise errors.StageMismatch(data_folder, what, "name the vocabulary they were built with")


class EpochSize(NamedTuple):
    """How large an epoch is. ``steps``: as many as read its tokens; ``padding``: share of padding in its batches."""

    steps: int
    instances: int
    tokens: int
    padding: float


def _size_of(stream: Stream, settings: BatchSettings, epoch: int) -> EpochSize:
    """The size of an epoch. Its padding is measured in its first `SAMPLED_STEPS` steps."""
    instances, tokens = stream.size(epoch)
    steps, first, real, size = -(-tokens // stream.part.batch_tokens), stream.begin(epoch), 0, 0
    for step in range(first, first + min(steps, SAMPLED_STEPS)):
        lengths = stream.chunks.lengths[np.concatenate([chosen for _, chosen in stream.step(step)])].astype(np.int64)
        real += int(lengths.sum())
        size += sum(group.size for group in settings.groups(lengths))
    return EpochSize(steps, instances, tokens, 1 - real / size if size else 0.0)


def epoch_size(folder: str, settings: BatchSettings | None = None, *, table: str = "train") -> EpochSize:
    """The size of an epoch, from ``manifest.json`` alone: of a duplicated corpus an epoch of the mean copy.

    Lengths are those of the manifest's 64 bins, each rounded up to the end of its bin; so padding is an estimate, and
    so is everything where ``settings.length`` cuts instances. With pairs redrawn (``copies_redraw = "pairs"``) copies
    differ, and one of them may have a few per cent more or fewer steps.

    Raises `errors.StageMismatch` if the folder has no lengths of this table, and `errors.RecipeInvalid`.
    """
    manifest = Manifest.load(str(folder))
    counted = manifest.statistics.get(table, {})
    if manifest.stage != "build-instances" or not counted.get("instances"):
        what = f"its manifest counts no instances of {table!r}"
        raise errors.StageMismatch(str(folder), what, "name a build-instances folder and one of its tables")
    section = manifest.recipe["instances"]
    copies = section["copies"] if table == "train" and section["masking"] == "duplicated" else 1
    counts = np.array(counted["lengths"], np.int64)
    ends = np.arange(1, len(counts) + 1) * int(section["length"]) // len(counts)
    lengths = np.repeat(ends, -(-counts // copies)).astype(np.int32)
    settings = (settings or BatchSettings()).resolved(int(lengths.max()))
    nothing = Ragged([], np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int32))
    keys = np.arange(len(lengths), dtype=np.uint64)
    firsts, labels = (lengths // 2 + 1, np.zeros(len(keys), np.int8)) if counted.get("pairs_drawn") else (lengths, None)
    corpus = Corpus(nothing, None, None, keys, lengths, firsts, labels, np.zeros(len(keys), np.uint16))
    stream = Stream(corpus, Part(0, ENDLESS, settings.length, settings.batch_tokens), 0, 0, 0)
    size = _size_of(stream, settings, 0)
    if settings.length < corpus.longest:
        return size
    tokens = counted["tokens"] // copies
    return EpochSize(-(-tokens // settings.batch_tokens), counted["instances"] // copies, tokens, size.padding)


def make_steps(
    corpus: Corpus,
    stream: Stream,
    steps: Sequence[int],
    settings: BatchSettings,
    masker: Masker | None,
    padding_id: int,
) -> list[list[Batch]]:
    """The micro-batches of several steps of a part of training.

    ``settings.batch_tokens`` and ``length`` are ignored: the part has its own. ``masker``: for masks that are not
    stored.
    """
    chosen, epochs, groups, counts, first = [], [], [], [], 0
    for step in steps:
        reads = stream.step(step)
        numbers = np.concatenate([numbers for _, numbers in reads])
        micro_batches = settings.groups(stream.chunks.lengths[numbers].astype(np.int64))
        groups += [group._replace(rows=group.rows + first) for group in micro_batches]
        chosen.append(numbers)
        epochs += [np.full(len(numbers), epoch) for epoch, numbers in reads]
        counts.append(len(micro_batches))
        first += len(chosen[-1])
    read, kind = (np.concatenate(chosen), np.concatenate(epochs)), np.int32 if settings.bits == 32 else np.int64
    batches = iter(make_batches(corpus, stream.chunks, *read, groups, masker, padding_id, kind))
    return [
        [dataclasses.replace(next(batches), step=step, number=number) for number in range(count)]
        for step, count in zip(steps, counts, strict=True)
    ]


def make_batches(
    corpus: Corpus,
    chunks: Chunks,
    chosen: I64,
    epochs: I64,
    groups: Sequence[Group],
    masker: Masker | None,
    padding_id: int,
    kind: type[Any] = np.int64,
) -> list[Batch]:
    """Read chunks, mask them and lay them out.

    ``chosen``: numbers of chunks; ``epochs``: the epoch of each; ``groups``: how they are batched; ``masker``: for
    masks that are not stored; ``kind``: of the integers.
    """
    order = np.concatenate([group.rows for group in groups])
    epochs = epochs[order]
    needs_words = masker is not None and masker.unit.needs_words
    rows = gather(corpus, chunks, chosen[order], word_starts=needs_words)
    if masker is not None and corpus.masked_positions is None:
        rows = draw_masks(rows, masker, epochs)
    bounds = np.cumsum([0, *(len(group.rows) for group in groups)])
    return [
        lay_out(part, group.members, group.width, padding_id, kind, epochs=epochs[begin : begin + len(group.rows)])
        for group, part, begin in zip(groups, rows.parts(bounds), bounds[:-1], strict=True)
    ]


def frozen_batches(
    corpus: Corpus, masker: Masker | None, length: int, budget: int, padding_id: int, *, tokens: int = 0
) -> Iterator[Batch]:
    """Padded batches of ``budget`` tokens over the instances of copy 0, each once, at most ``length`` tokens of each.

    Instances come in the order of their keys; masks are the stored ones, else those of epoch 0: so a loss over these
    batches is the same for the same weights whenever it is measured. ``tokens``: stop after about this many (0: read
    all).
    """
    chunks, settings = cut_to_length(corpus, length), BatchSettings(micro_batch_tokens=budget)
    chosen = np.argsort(chunks.keys, kind="stable")
    chosen = chosen[corpus.copies[chunks.rows[chosen]] == 0]
    ends = np.cumsum(chunks.lengths[chosen])
    if tokens:
        chosen = chosen[: int(np.searchsorted(ends, tokens)) + 1]
    windows = ends[: len(chosen)] // (8 * budget)  # rows are sorted by length within this many tokens
    for window in np.split(chosen, np.flatnonzero(np.diff(windows)) + 1):
        if len(window):
            groups = settings.groups(chunks.lengths[window].astype(np.int64))
            yield from make_batches(corpus, chunks, window, np.zeros_like(window), groups, masker, padding_id)


class Feed(Generic[T]):
    """``make(start), make(start + 1), ...`` below ``stop`` (None: without end), in order. A context manager.

    Made by ``threads`` threads, one more result in advance than there are threads.
    """

    def __init__(self, make: Callable[[int], T], start: int, stop: int | None, *, threads: int = 1) -> None:
        self.waited = 0.0  # seconds the consumer waited in total
        self._make, self._number, self._stop, self._threads = make, start, stop, threads
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
        while len(self._waiting) <= self._threads and (self._stop is None or self._number < self._stop):
            self._waiting.append(self._pool.submit(self._make, self._number))
            self._number += 1

    def __enter__(self) -> Feed[T]:
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="feed")
        self._submit()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
