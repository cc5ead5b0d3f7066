"""The invariants of instances, checked on every batch that is built; `measure` counts.

Each check takes a `Plan` or an INSTANCES batch and raises `errors.InvariantBroken`, which names the first bad row.
Nothing here trusts the code that built the batch: masks are undone from what is stored and compared with the text.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from corpusforge import errors
from corpusforge.arrays import I64, Bools
from corpusforge.instances.formats import Plan
from corpusforge.instances.mask_units import find_unit
from corpusforge.instances.masking import Ids, MaskSettings, Specials, mask_counts
from corpusforge.instances.negatives import Negatives
from corpusforge.instances.source import Source, list_column

_MEND = "this is a fault of CorpusForge, please report it; the stage keeps nothing of this batch"

_CHOICES = 200
"""Number of instances with a choice of masks from which two copies with equal masks cannot be a coincidence: the
smallest choice is one of two words, and 0.5 to the power of 200 is 1e-60."""


def check_cover(source: Source, plan: Plan) -> None:
    """The instances are the documents: each token in exactly one, in order, none across a document's end."""
    stops = plan.a_start + plan.a_length
    begins = np.concatenate((np.zeros(1, np.int64), stops))
    where = f"{len(source.keys)} documents"
    _demand(begins[:-1] == plan.a_start, where, "instances leave out or repeat text of their document")
    if int(begins[-1]) != len(source.ids):
        raise errors.InvariantBroken(where, "the end of the last document is in no instance", _MEND)
    _demand(_inside(source, plan.document, plan.a_start, stops), where, "an instance crosses the end of its document")


def check_joined(source: Source, plan: Plan, separator: int) -> None:
    """The instances are the joined documents: each token once, in order; between two of them at most a separator."""
    stops, where = plan.a_start + plan.a_length, f"{len(source.keys)} documents"
    left_out = np.append(plan.a_start, len(source.ids)) - np.insert(stops, 0, 0)
    between = left_out[1:-1]
    _demand(left_out[[0, -1]] == 0, where, "instances leave out the beginning or the end of the text")
    same = plan.document[1:] == plan.last_document[:-1]
    _demand(between == ~same, where, "instances leave out or repeat text")
    _demand(source.ids[stops[:-1][between == 1]] == separator, where, "text between two instances is in none")


def check_order(source: Source, plan: Plan, longest: int) -> None:
    """A and B follow each other in their document: B later where the label is 0, A where it is 1.

    ``longest``: tokens of a pair that may have been shortened; in all others nothing is between A and B.
    """
    where = f"{len(source.keys)} documents"
    a_stop, b_stop = plan.a_start + plan.a_length, plan.b_start + plan.b_length
    _demand((plan.a_length > 0) & (plan.b_length > 0), where, "a segment of a pair is empty")
    _demand(_inside(source, plan.document, plan.a_start, a_stop), where, "A crosses the end of its document")
    _demand(_inside(source, plan.document, plan.b_start, b_stop), where, "B crosses the end of its document")
    between = np.where(plan.label == 0, plan.b_start - a_stop, plan.a_start - b_stop)
    _demand(between >= 0, where, "a label does not say which segment is the first")
    _demand((between == 0) | _shortened(plan, longest), where, "A and B do not follow each other")


def check_pairs(source: Source, plan: Plan, negatives: Negatives, longest: int) -> None:
    """B continues A in its document where the label is 0, and is from another document where it is 1.

    ``longest``: as in `check_order`.
    """
    where = f"{len(source.keys)} documents"
    a_stop, b_stop = plan.a_start + plan.a_length, plan.b_start + plan.b_length
    _demand((plan.a_length > 0) & (plan.b_length > 0), where, "a segment of a pair is empty")
    _demand(_inside(source, plan.document, plan.a_start, a_stop), where, "A crosses the end of its document")
    _demand(plan.b_foreign == (plan.label == 1), where, "a label does not say where B is from")
    next_ = plan.label == 0
    follows = (plan.b_start == a_stop) | ((plan.b_start > a_stop) & _shortened(plan, longest))
    in_place = follows & _inside(source, plan.document, plan.b_start, b_stop)
    _demand(~next_ | in_place, where, "B is labelled as the continuation of A and is not")
    if len(negatives) > 1:
        rows = np.flatnonzero(plan.b_foreign)
        origin = negatives.keys[negatives.row_of(plan.b_start[rows])]
        _demand(origin != source.keys[plan.document[rows]], where, "a random B is from the document of A")


def check_instances(
    batch: pa.RecordBatch,
    specials: Specials,
    length: int,
    mask: MaskSettings,
    originals: Ids | None = None,
    *,
    separators: int = 0,
) -> None:
    """The invariants of rows of INSTANCES.

    ``length``: longest instance; ``mask``: the settings of stored masks; ``originals``: the flat unmasked ids, where
    they are known; ``separators``: how many [SEP] are between documents inside segments.
    """
    ids, offsets = list_column(batch.column("input_ids"))
    where, lengths = f"{batch.num_rows} instances", np.diff(offsets)
    _demand(lengths <= length, where, f"an instance is longer than {length}")
    _demand(batch.column("length").to_numpy() == lengths, where, "the stored length is wrong")
    if "masked_positions" in batch.schema.names:
        ids = _check_masks(batch, ids, offsets, specials, mask, where)
    if originals is not None and not np.array_equal(ids, originals):
        raise errors.InvariantBroken(where, "an unmasked position or a label differs from the text", _MEND)
    _check_frame(batch, ids, offsets, specials, where, separators)


def _check_frame(batch: pa.RecordBatch, ids: Ids, offsets: I64, specials: Specials, where: str, inner: int) -> None:
    """[CLS] A [SEP] or [CLS] A [SEP] B [SEP], and specials nowhere else."""
    segments = batch.column("segment_lengths")
    pairs = segments.flatten().to_numpy().astype(np.int64).reshape(-1, 2)
    a, b = pairs[:, 0], pairs[:, 1]
    _demand(a + b == np.diff(offsets), where, "segment lengths do not add up")
    _demand((a >= 3) & (b != 1), where, "a segment is empty")
    is_pair = batch.column("pair_label").is_valid().to_numpy(zero_copy_only=False)
    _demand(is_pair == (b > 0), where, "a pair without a label, or a label without a pair")
    _demand(ids[offsets[:-1]] == specials.cls, where, "an instance does not begin with [CLS]")
    _demand(ids[offsets[:-1] + a - 1] == specials.sep, where, "A does not end with [SEP]")
    _demand(ids[offsets[1:] - 1] == specials.sep, where, "an instance does not end with [SEP]")
    # [UNK] replaces text; the other four do not come from text.
    frame = specials.is_special()
    frame[specials.unk] = False
    expected = 2 * batch.num_rows + int((b > 0).sum()) + inner
    if int(np.count_nonzero(frame[ids])) != expected:
        raise errors.InvariantBroken(where, "a special token is inside a segment", _MEND)


def _check_masks(
    batch: pa.RecordBatch, ids: Ids, offsets: I64, specials: Specials, mask: MaskSettings, where: str
) -> Ids:
    """Check stored masks and return the ids without them."""
    positions, position_offsets = list_column(batch.column("masked_positions"))
    labels, label_offsets = list_column(batch.column("masked_labels"))
    _demand(position_offsets == label_offsets, where, "positions and labels do not match in number")
    counts = np.diff(position_offsets)
    flat = positions.astype(np.int64) + np.repeat(offsets[:-1], counts)
    _demand(flat < np.repeat(offsets[1:], counts), where, "a masked position lies after the end of its instance")
    # Ascending inside instances, and instances follow each other: ascending throughout.
    _demand(np.diff(flat) > 0, where, "masked positions do not ascend")
    special = specials.is_special()
    _demand(~special[labels], where, "a special token is masked")
    seen = ids[flat]
    sound = specials.is_word[seen] | (seen == specials.mask) | (seen == labels)
    _demand(sound, where, "a random token is a special or an unused one")
    restored = ids.copy()
    restored[flat] = labels
    maskable = np.concatenate(([0], np.cumsum(~special[restored])))[offsets]
    budgets = np.minimum(mask_counts(np.diff(offsets), mask), np.diff(maskable))
    unit = find_unit(mask.unit)
    is_right = counts == budgets if unit.is_exact else counts <= budgets
    _demand(is_right, where, "an instance has the wrong number of masks")
    if unit.needs_words:
        _check_whole(batch, flat, restored, offsets, specials, where)
    return restored


def _check_whole(batch: pa.RecordBatch, masked: I64, ids: Ids, offsets: I64, specials: Specials, where: str) -> None:
    """A token that continues a word is masked exactly where the token before it is."""
    starts, start_offsets = list_column(batch.column("word_starts"))
    _demand(start_offsets == offsets, where, "word starts and tokens do not match in number")
    special = specials.is_special()[ids]
    _demand(starts[special & (ids != specials.unk)], where, "a special token continues a word")
    is_masked = np.zeros(len(ids), bool)
    is_masked[masked] = True
    continues = ~starts[1:] & ~special[:-1] & ~special[1:]
    _demand(~continues | (is_masked[1:] == is_masked[:-1]), where, "a word is masked in part")


class MaskSum:
    """A checksum of the masks of one copy of a batch of documents."""

    def __init__(self) -> None:
        self.choices, self.checksum = 0, 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch: which tokens are masked, and what the model sees in their places."""
        ids, offsets = list_column(batch.column("input_ids"))
        positions, bounds = list_column(batch.column("masked_positions"))
        counts = np.diff(bounds)
        flat = positions + np.repeat(offsets[:-1], counts)
        own = int(np.dot(flat + 1, ids[flat].astype(np.int64) + 1))
        self.checksum = (self.checksum * 31 + own) % 2**64
        self.choices += int(np.count_nonzero((counts > 0) & (counts < np.diff(offsets) - 3)))


def check_copies(copies: list[MaskSum]) -> None:
    """No two copies have the same masks, provided that there are enough instances with a choice."""
    sums = [copy.checksum for copy in copies if copy.choices >= _CHOICES]
    if len(set(sums)) < len(sums):
        raise errors.InvariantBroken(f"{len(copies)} copies", "two of them have the same masks", _MEND)


def _shortened(plan: Plan, longest: int) -> Bools:
    return np.asarray(plan.a_length + plan.b_length == longest)


def _inside(source: Source, document: I64, starts: I64, stops: I64) -> Bools:
    bounds = source.token_offsets
    return np.asarray((starts >= bounds[document]) & (stops <= bounds[document + 1]))


def _demand(good: Bools, where: str, what: str) -> None:
    if not np.all(good):
        raise errors.InvariantBroken(f"{where}, row {int(np.argmin(good))}", what, _MEND)
