"""The transforms `CleanDocuments`, `CountWords` and `BuildInstances`: stages for pipelines of your own.

They call the functions of the stages on batches that another step made. Documents and token ids are never shuffled, and
every random choice is keyed by document, so the result is that of the stage, however the documents are divided into
batches. Of `BuildInstances`:

    batches -> token ids                                                   (in one step with what comes before)
    token ids -> packed candidates -> the smallest of all -> negatives, a side input   (formats that need them)
    token ids + negatives -> instances, and as ``heldout`` those of held-out documents
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corpusforge import errors
from corpusforge.beam.io import REJECTS, in_batches
from corpusforge.beam.sdk import as_itself, beam, count
from corpusforge.clean.cleaner import Cleaner, cleaner_of
from corpusforge.instances.build import (
    build_parts,
    builders_of,
    copies_of,
    encode_documents,
    limit_of,
    settings_of,
)
from corpusforge.instances.builder import BuildSettings
from corpusforge.instances.formats import find_format
from corpusforge.instances.negatives import (
    MergeCandidates,
    NegativeSettings,
    Taken,
    negatives_of,
    negatives_tables,
    pack_candidates,
    take_parts,
)
from corpusforge.instances.source import SentenceLimit
from corpusforge.sections import Clean, Instances
from corpusforge.tokens.bert_split import UNCASED
from corpusforge.tokens.counts import PARTITIONS, count_words, merge_counts, pack_counts, read_counts
from corpusforge.tokens.mask_lexicon import joiner_of
from corpusforge.tokens.splitting import Segmentation

if TYPE_CHECKING:
    from corpusforge.clean.filters import Filter
    from corpusforge.tokens.mask_lexicon import WordJoiner
    from corpusforge.tokens.vocab import Vocab

HELDOUT = "heldout"
"""Tag of the second output of `BuildInstances`."""


class CleanDocuments(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to those that stay; what was dropped, with its reasons, is the output ``rejects``.

    ``cleaner``: a recipe's [clean], with ``filters`` of the user's own as for `corpusforge.clean`; or a ready
    `clean.cleaner.Cleaner`. What its `check` raises, for a missing word list or a function that cannot be sent to
    workers, is raised here, and so stops the program that builds the graph and not a worker an hour later.

        kept, rejects = documents | CleanDocuments(Clean(rules=("gopher",)), filters=[lambda text: len(text) > 200])
    """

    def __init__(self, cleaner: Clean | Cleaner, *, filters: Iterable[Callable[..., Any] | Filter] = ()) -> None:
        super().__init__()
        if isinstance(cleaner, Clean):
            cleaner = cleaner_of(cleaner, filters=filters)
        elif filters:
            mend = "pass the section Clean(...) with the filters, or cleaner_of(..., filters=...)"
            raise errors.FilterFailed("CleanDocuments", "a ready cleaner takes no more filters", mend)
        cleaner.check()
        self.cleaner = cleaner

    def expand(self, documents: Any) -> Any:
        cleaning = beam.ParDo(_Clean(self.cleaner)).with_outputs(REJECTS, main="documents")
        return in_batches(documents | "Clean" >> cleaning)


class _Clean(beam.DoFn):  # type: ignore[misc, name-defined]
    """A batch -> what stays of it, and its rejects."""

    def __init__(self, cleaner: Cleaner) -> None:
        self.cleaner = cleaner

    def process(self, documents: pa.RecordBatch) -> Iterator[Any]:
        with as_itself():
            cleaned = self.cleaner.clean(documents)
        count(cleaned.tallies)
        if cleaned.documents.num_rows:
            yield cleaned.documents
        if cleaned.rejects.num_rows:
            yield beam.pvalue.TaggedOutput(REJECTS, cleaned.rejects)


class CountWords(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to COUNTS batches (word, count): one a partition of the words, each word in one of them.

    Packed counts of a batch are shuffled, never words one by one.

        counts = documents | CountWords(BertSegmentation(lowercase=True))
    """

    def __init__(self, segmentation: Segmentation = UNCASED) -> None:
        super().__init__()
        self.segmentation = segmentation

    def expand(self, documents: Any) -> Any:
        return (
            documents
            | "Count" >> beam.FlatMap(_count_batch, self.segmentation)
            | "Merge" >> beam.CombinePerKey(merge_counts)
            | "Unpack" >> beam.FlatMap(_unpack).with_output_types(pa.RecordBatch)
        )


def _count_batch(documents: pa.RecordBatch, segmentation: Segmentation) -> Iterable[tuple[int, bytes]]:
    """(partition, packed counts)."""
    return pack_counts(count_words(documents.column("text"), segmentation), PARTITIONS)


def _unpack(group: tuple[int, bytes]) -> list[pa.RecordBatch]:
    """COUNTS batches of (partition, packed counts)."""
    return read_counts(group[1]).combine_chunks().to_batches()  # type: ignore[no-any-return]


class BuildInstances(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to INSTANCES batches; those of held-out documents are the output ``heldout``.

    ``section``: a recipe's [instances]; ``seed``: the recipe's.

        train, heldout = documents | BuildInstances(vocab, sections.Instances(format="segment-pair"), seed=0)
    """

    def __init__(self, vocab: Vocab, section: Instances, *, seed: int = 0) -> None:
        super().__init__()
        self.vocab, self.section, self.joins = vocab, section, joiner_of(vocab, section)
        self.settings, self.negatives = settings_of(vocab, section, seed), NegativeSettings.of(section, seed)

    def expand(self, documents: Any) -> Any:
        section = self.section
        encode = _Encode(self.vocab, self.settings.word_starts, self.joins, section.heldout_by, limit_of(section))
        tokens = documents | "Encode" >> beam.ParDo(encode).with_output_types(pa.RecordBatch)
        sides = [beam.pvalue.AsSingleton(self._tables(tokens))] if find_format(section.format).needs_negatives else []
        building = beam.FlatMap(_build, self.settings, copies_of(section), section.heldout, *sides)
        return in_batches(tokens | "Build" >> building.with_outputs(HELDOUT, main="train"))

    def _tables(self, tokens: Any) -> Any:
        """The tables of negatives of both parts, one element."""
        settings = self.negatives
        candidates = tokens | "Candidates" >> beam.Map(_candidates, settings)
        smallest = candidates | "Smallest" >> beam.CombineGlobally(MergeCandidates(settings))
        taken = tokens | "TakeNegatives" >> beam.FlatMap(_take, settings, beam.pvalue.AsSingleton(smallest))
        gathered = taken | "GatherNegatives" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
        return gathered | "Negatives" >> beam.Map(_negatives, self.vocab.size)


class _Encode(beam.DoFn):  # type: ignore[misc, name-defined]
    """DOCUMENTS -> TOKENS."""

    def __init__(
        self, vocab: Vocab, word_starts: bool, joins: WordJoiner | None, heldout_by: str, limit: SentenceLimit
    ) -> None:
        self.vocab, self.word_starts, self.joins = vocab, word_starts, joins
        self.heldout_by, self.limit = heldout_by, limit

    def setup(self) -> None:
        from corpusforge.tokens.encode import Encoder

        self._encoder = Encoder(self.vocab, word_starts=self.word_starts, joiner=self.joins)

    def process(self, documents: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield encode_documents(self._encoder, documents, self.heldout_by, self.limit)[0]


def _candidates(tokens: pa.RecordBatch, settings: NegativeSettings) -> bytes:
    return pack_candidates([tokens], settings)


def _take(tokens: pa.RecordBatch, settings: NegativeSettings, candidates: bytes) -> Iterator[tuple[str, Taken]]:
    return take_parts([tokens], settings, candidates)


def _negatives(taken: Iterable[tuple[str, Taken]], vocab_size: int) -> dict[str, pa.RecordBatch]:
    return dict(negatives_tables(taken, vocab_size))


def _build(
    tokens: pa.RecordBatch,
    settings: BuildSettings,
    copies: int,
    heldout: float,
    tables: dict[str, pa.RecordBatch] | None = None,
) -> Iterator[Any]:
    """INSTANCES of the training part; as ``heldout``, those of the other."""
    with as_itself():
        builders = builders_of(settings, (lambda split: negatives_of(tables.__getitem__, split)) if tables else None)
        for split, built in build_parts(tokens, builders, copies, heldout):
            if built.instances.num_rows:
                yield built.instances if split == "train" else beam.pvalue.TaggedOutput(HELDOUT, built.instances)
