"""Personal data: e-mail addresses, public IP addresses and telephone numbers are masked, or their pages dropped.

Comes in: a batch of DOCUMENTS. Goes out: a `Verdict`. The one decision: a mask is something of the same kind that is
reserved for examples (RFC 2606, 5737, 3849; 555-0100 in North America), not a tag. So text stays text: a vocabulary
needs no new entries, and text that was masked once is left alone the second time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge import errors
from corpusforge.arrays import I64
from corpusforge.clean.pii_finds import Finds, find
from corpusforge.clean.step import Codes, Edits, Verdict
from corpusforge.text import slices, text_bytes, union

KINDS = ("email", "ip", "phone")
MASKS = ("email@example.com", "192.0.2.1", "2001:db8::1", "555-0100")
"""What stands for `pii_finds.EMAIL`, IPV4, IPV6, PHONE."""
REASONS = ("kept", "page:pii")
EDITS = ("kept", "text:email", "text:ip", "text:phone")
_EDIT_OF = np.array([1, 2, 2, 3], np.int8)


@dataclass(frozen=True)
class PiiStep:
    """``action``: "mask" or "drop". ``kinds``: which of `KINDS` to look for."""

    action: str = "mask"
    kinds: tuple[str, ...] = KINDS

    @property
    def name(self) -> str:
        """What rejects say dropped a page."""
        return "pii"

    def check(self) -> None:
        """Raises `errors.RecipeInvalid` where an action or kind is none."""
        if self.action not in ("mask", "drop"):
            raise errors.RecipeInvalid("clean.pii", f"{self.action!r} is no action", "use off, mask or drop")
        if not self.kinds or set(self.kinds) - set(KINDS):
            raise errors.RecipeInvalid("clean.pii_kinds", f"{list(self.kinds)}", f"name some of {', '.join(KINDS)}")

    def resources(self) -> dict[str, Any]:
        """Nothing: all is in the code."""
        return {}

    def apply(self, documents: pa.RecordBatch) -> Verdict:
        """Mask what is found, or drop the documents that hold any."""
        texts = documents["text"]
        data, offsets = text_bytes(texts)
        finds = _without_masks(data, find(data, offsets, self.kinds))
        owners = np.searchsorted(offsets, finds.starts, "right") - 1
        codes = np.zeros(len(texts), np.int8)
        edits = _EDIT_OF[finds.kinds]
        if self.action == "drop":
            codes[owners] = 1
            return Verdict(REASONS, codes, texts, _details(owners, edits))
        masked = mask(texts, finds) if len(finds.starts) else texts
        return Verdict(REASONS, codes, masked, edits=Edits(EDITS, owners, edits, finds.stops - finds.starts))


def _without_masks(data: Any, finds: Finds) -> Finds:
    """Left alone: what is a mask already (the others are no public addresses and no whole numbers)."""
    own = np.frombuffer(MASKS[0].encode(), np.uint8)
    same = np.flatnonzero(finds.stops - finds.starts == len(own))
    same = same[(data[finds.starts[same][:, None] + np.arange(len(own))] == own).all(1)]
    kept = np.ones(len(finds.starts), bool)
    kept[same] = False
    return finds if not len(same) else Finds(finds.starts[kept], finds.stops[kept], finds.kinds[kept])


def _details(owners: I64, edits: Codes) -> dict[int, str]:
    """``"2 email, 1 phone"`` of every document with finds."""
    details: dict[int, str] = {}
    pairs, counts = np.unique(owners * len(EDITS) + edits, return_counts=True)
    # A Python loop with a reason: over dropped documents only.
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        owner, kind = divmod(pair, len(EDITS))
        said = f"{count} {EDITS[kind].removeprefix('text:')}"
        details[owner] = f"{details[owner]}, {said}" if owner in details else said
    return details


def mask(texts: pa.StringArray, finds: Finds) -> pa.StringArray:
    """The column with every find replaced by the mask of its kind."""
    data, offsets = text_bytes(texts)
    cuts = union(offsets, finds.starts, finds.stops)
    pieces = slices(data, cuts)
    found = np.zeros(len(pieces), bool)
    found[np.searchsorted(cuts, finds.starts)] = True
    masks = pa.array(MASKS).take(pa.array(finds.kinds))
    replaced = pc.replace_with_mask(pieces, pa.array(found), masks)
    bounds = np.searchsorted(cuts, offsets).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(bounds), replaced), "")
