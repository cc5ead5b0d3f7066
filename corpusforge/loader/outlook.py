"""The outlook: how many batches an epoch will have, from the manifest alone.

Comes in: the folder, of which only `manifest.json` is read, and the settings of batches. Goes out: an `Extent`.
Decision: lengths are those of the manifest's 64 bins, rounded up to the end of their bin. So it is what `Batcher`
counts where bins end at multiples of the padding (instances of 512 padded to multiples of 8), and never less. With
pairs redrawn (``copies_redraw = "pairs"``) copies differ, and the manifest has only their sum: this is an epoch of the
mean copy, and one of them may have some per cent of batches more or fewer.
"""

from __future__ import annotations

import numpy as np

from corpusforge import errors
from corpusforge.loader.epochs import BatchSettings, Extent, cut_bins
from corpusforge.loader.packing import pack
from corpusforge.shards import Manifest


def outlook(folder: str, settings: BatchSettings | None = None, *, table: str = "train") -> Extent:
    """How much an epoch is: of a duplicated corpus an epoch of the mean copy.

    Raises `errors.StageMismatch` where the folder has no lengths of this table, and `errors.RecipeInvalid`.
    """
    manifest = Manifest.load(str(folder))
    found = manifest.statistics.get(table, {})
    if manifest.stage != "build-instances" or not found.get("instances"):
        what = f"its manifest counts no instances of {table!r}"
        raise errors.StageMismatch(str(folder), what, "name a build-instances folder and one of its tables")
    section = manifest.recipe["instances"]
    copies = section["copies"] if table == "train" and section["masking"] == "duplicated" else 1
    counts = np.array(found["lengths"], np.int64)
    ends = np.arange(1, len(counts) + 1) * int(section["length"]) // len(counts)
    lengths = np.repeat(ends, -(-counts // copies))[::-1].astype(np.int32)
    settings = (settings or BatchSettings()).resolved(int(lengths[0]))
    if settings.packing:
        rows = len(pack(lengths, settings.row_length))
        batches, size = -(-rows // (settings.tokens // settings.row_length)), rows * settings.row_length
    else:
        widths = settings.widths(lengths)
        cuts = cut_bins(widths, settings.tokens)
        batches, size = len(cuts) - 1, int((np.diff(cuts) * widths[cuts[:-1]]).sum())
    return Extent(batches, found["instances"] // copies, found["tokens"] // copies, size)
