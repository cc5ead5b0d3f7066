"""Instances on disk to batches in memory: NumPy in, NumPy out, no framework.

`Batcher` is the way in; see docs/instances.md, "Loading".
"""

from corpusforge.loader.batcher import Batcher
from corpusforge.loader.epochs import BatchSettings, Extent
from corpusforge.loader.layout import Batch
from corpusforge.loader.outlook import outlook

__all__ = ["Batch", "BatchSettings", "Batcher", "Extent", "outlook"]
