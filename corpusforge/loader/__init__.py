"""Instances on disk to batches in memory: NumPy arrays, no framework; the trainer's own batches.

`Batcher` is the way in; see docs/instances.md, "Loading".
"""

from corpusforge.loader.batcher import Batcher, EpochSize, epoch_size
from corpusforge.loader.layout import Batch
from corpusforge.loader.packing import BatchSettings

__all__ = ["Batch", "BatchSettings", "Batcher", "EpochSize", "epoch_size"]
