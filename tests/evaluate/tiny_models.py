"""Tiny checkpoints for tests of evaluation: vocabularies with pieces inside words, and weights drawn from a seed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from corpusforge.instances.masking import Specials
from corpusforge.tokens.bert_split import BertSegmentation
from corpusforge.tokens.wordpiece import arrange
from corpusforge.trainer.architecture import Architecture
from corpusforge.trainer.hf_folder import export
from corpusforge.trainer.model import Encoder, initialize

WORDS = [*(f"w{k}" for k in range(120)), *(f"##w{k}" for k in range(20)), *(f"##{k}" for k in range(10)), *".,?!-"]


def write_checkpoint(
    folder: Path, words: list[str] | None = None, deviation: float = 0.3, dropout: float = 0.1, **changes: object
) -> Path:
    """A Hugging Face directory of a BERT of two layers, width 32. ``words``: pieces of its vocabulary; ``changes``:
    to its `Architecture`."""
    pieces = WORDS if words is None else words
    size = -(-(len(pieces) + 5) // 64) * 64
    vocab = arrange(pieces, size, size - len(pieces) - 5, BertSegmentation())
    (folder / "vocabulary").mkdir(parents=True)
    for name, content in vocab.save_files().items():
        (folder / "vocabulary" / name).write_bytes(content)
    shape = Architecture("bert", 2, 32, 2, 64, vocab.size, 64, 2, 1e-12, dropout, vocab.specials.pad, False)
    model = Encoder(dataclasses.replace(shape, **changes))  # type: ignore[arg-type]
    initialize(model, 3, deviation=deviation)
    (folder / "model").mkdir()
    ids = {"cls": vocab.specials.cls, "sep": vocab.specials.sep}
    export(model, folder / "model", vocab_folder=str(folder / "vocabulary"), ids=ids, card={})
    return folder / "model"


def specials_of(folder: Path) -> Specials:
    """The special ids of a checkpoint."""
    from corpusforge.loader.batcher import load_specials

    return load_specials(str(folder))
