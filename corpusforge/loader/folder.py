"""What a folder of build-instances says about itself: its special ids, its masks, its seed.

Comes in: the folder and its manifest. Goes out: plain values for the mask function. Decision: masks of a loader are
those the instances were built for unless it is told otherwise, so a loader on a fresh machine needs the folder alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from corpusforge import errors
from corpusforge.instances.masking import MaskSettings, Specials
from corpusforge.loader.corpus import Corpus
from corpusforge.tokens.vocab import Vocab


def load_specials(vocab_folder: str) -> Specials:
    """The special ids of a vocabulary folder."""
    vocab = Vocab.load(vocab_folder)
    ids = vocab.specials
    return Specials(vocab.size, ids.pad, ids.unk, ids.cls, ids.sep, ids.mask, vocab.unused)


def mask_settings(section: Mapping[str, Any]) -> MaskSettings:
    """How masks are drawn, from the recipe's section [instances] as plain values; other keys are passed over.

    >>> mask_settings({"mask_rate": 0.2, "length": 64}).rate
    0.2
    """
    names = {"mask_rate": "rate", "mask_share": "mask_share", "random_share": "random_share"}
    names |= {"max_predictions": "max_predictions", "mask_unit": "unit"}
    return MaskSettings(**{names[k]: v for k, v in section.items() if k in names})


def check_vocabulary(corpus: Corpus, specials: Specials, data_folder: str, vocab_folder: str) -> None:
    """Look at up to a thousand instances: ids inside the vocabulary, [CLS] in front, [SEP] behind.

    Raises `errors.StageMismatch` where they do not fit.
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
