"""`BuildInstances`: training instances from anyone's PCollection of DOCUMENTS batches.

    batches -> token ids                                                   (in one step with what comes before)
    token ids -> packed candidates -> CombineGlobally -> negatives, a side input  (formats that need them)
    token ids + negatives -> instances, and as ``heldout`` those of held-out documents

Token ids are never shuffled. The negatives are the same documents as the stage's, and every random choice is keyed by
document, so the result is the stage's, whatever the batches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corpusforge.beam.io import in_batches
from corpusforge.beam.sdk import as_itself, beam
from corpusforge.instances.build import limit_of, settings_of
from corpusforge.instances.builder import Builder, BuildSettings
from corpusforge.instances.formats import find_format
from corpusforge.instances.negatives import (
    Candidates,
    MergeCandidates,
    NegativeSettings,
    candidates_of,
    negatives_of,
    negatives_table,
    pack_parts,
    take_negatives,
    unpack_parts,
)
from corpusforge.instances.source import SentenceLimit, read_source
from corpusforge.instances.splits import SPLITS, split_tokens, with_draws
from corpusforge.tokens.mask_lexicon import joiner_of

if TYPE_CHECKING:
    from corpusforge.tokens.mask_lexicon import WordJoiner
    from corpusforge.tokens.vocab import Vocab

HELDOUT = "heldout"
"""Tag of the second output."""


class BuildInstances(beam.PTransform):  # type: ignore[misc, name-defined]
    """DOCUMENTS batches to INSTANCES batches; those of held-out documents are the output ``heldout``.

    ``section``: the values of a recipe's [instances] (`recipe.Instances`); ``seed``: the recipe's.

        train, heldout = documents | BuildInstances(vocab, sections.Instances(format="segment-pair"), seed=0)
    """

    def __init__(self, vocab: Vocab, section: Any, *, seed: int = 0) -> None:
        super().__init__()
        self.vocab, self.format, self.heldout_by = vocab, section.format, section.heldout_by
        self.settings, self.joins = settings_of(vocab, section, seed), joiner_of(vocab, section)
        self.limit = limit_of(section)
        self.copies = section.copies if section.masking == "duplicated" else 1
        self.negatives = NegativeSettings(seed, section.heldout, section.negatives_megabytes << 20)

    def expand(self, documents: Any) -> Any:
        encode = _Encode(self.vocab, self.heldout_by, self.settings.word_starts, self.joins, self.limit)
        tokens = documents | "Encode" >> beam.ParDo(encode).with_output_types(pa.RecordBatch)
        sides = [beam.pvalue.AsSingleton(self._negatives(tokens))] if find_format(self.format).needs_negatives else []
        build = _Build(self.settings, self.copies, self.negatives)
        return in_batches(tokens | "Build" >> beam.ParDo(build, *sides).with_outputs(HELDOUT, main="train"))

    def _negatives(self, tokens: Any) -> Any:
        """The tables of negatives of both parts, one element."""
        limits = (
            tokens
            | "Candidates" >> beam.ParDo(_Candidates(self.negatives))
            | "Smallest" >> beam.CombineGlobally(MergeCandidates(self.negatives))
        )
        return (
            tokens
            | "TakeNegatives" >> beam.ParDo(_TakeNegatives(self.negatives), beam.pvalue.AsSingleton(limits))
            | "GatherNegatives" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
            | "Negatives" >> beam.Map(_tables, self.vocab.size)
        )


class _Encode(beam.DoFn):  # type: ignore[misc, name-defined]
    """DOCUMENTS -> TOKENS, with the draws of URLs where these decide what is held out."""

    def __init__(
        self, vocab: Vocab, heldout_by: str, word_starts: bool, joins: WordJoiner | None, limit: SentenceLimit
    ) -> None:
        self.vocab, self.heldout_by, self.word_starts, self.joins = vocab, heldout_by, word_starts, joins
        self.limit = limit

    def setup(self) -> None:
        from corpusforge.tokens.encode import Encoder

        self._encoder = Encoder(self.vocab, word_starts=self.word_starts, joiner=self.joins)

    def process(self, documents: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        tokens, _ = self.limit(self._encoder.encode(documents))
        yield with_draws(tokens, documents) if self.heldout_by == "url" else tokens


class _Candidates(beam.DoFn):  # type: ignore[misc, name-defined]
    """TOKENS -> packed candidates by part."""

    def __init__(self, settings: NegativeSettings) -> None:
        self.settings = settings

    def process(self, tokens: pa.RecordBatch) -> Iterator[bytes]:
        found = dict.fromkeys(SPLITS, b"")
        for split, part in split_tokens(tokens, self.settings.seed, self.settings.heldout).items():
            budget = self.settings.budget_of(split)
            found[split] = candidates_of(read_source(part), self.settings.seed, budget).pack()
        yield pack_parts(found)


class _TakeNegatives(beam.DoFn):  # type: ignore[misc, name-defined]
    """TOKENS, the candidates of the corpus -> (part, the negatives among these documents)."""

    def __init__(self, settings: NegativeSettings) -> None:
        self.settings = settings

    def process(self, tokens: pa.RecordBatch, packed: bytes) -> Iterator[tuple[str, Any]]:
        merged = unpack_parts(packed)
        for split, part in split_tokens(tokens, self.settings.seed, self.settings.heldout).items():
            limit = Candidates.unpack(merged[split]).limit(self.settings.budget_of(split))
            taken = take_negatives(read_source(part), self.settings.seed, limit)
            if len(taken.keys):
                yield split, taken


def _tables(taken: Iterable[tuple[str, Any]], vocab_size: int) -> dict[str, pa.RecordBatch]:
    parts: dict[str, list[Any]] = {split: [] for split in SPLITS}
    for split, found in taken:
        parts[split].append(found)
    return {split: negatives_table(found, vocab_size) for split, found in parts.items()}


class _Build(beam.DoFn):  # type: ignore[misc, name-defined]
    """TOKENS, negatives -> INSTANCES of both parts."""

    def __init__(self, settings: BuildSettings, copies: int, negatives: NegativeSettings) -> None:
        self.settings = {"train": settings, HELDOUT: dataclasses.replace(settings, stored_masks=True)}
        self.copies, self.negatives = copies, negatives

    def process(self, tokens: pa.RecordBatch, tables: dict[str, pa.RecordBatch] | None = None) -> Iterator[Any]:
        with as_itself():
            for split, part in split_tokens(tokens, self.negatives.seed, self.negatives.heldout).items():
                negatives = None if tables is None else negatives_of(tables.__getitem__, split)
                builder = Builder(self.settings[split], negatives)
                for copy in range(self.copies if split == "train" else 1):
                    for built in builder.batches(part, copy):
                        if built.instances.num_rows:
                            is_main = split == "train"
                            yield built.instances if is_main else beam.pvalue.TaggedOutput(HELDOUT, built.instances)
