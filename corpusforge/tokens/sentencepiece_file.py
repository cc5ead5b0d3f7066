"""Read and write model files of SentencePiece (spiece.model).

The few fields that decide ids (pieces with scores and kinds, the algorithm, the character map) are read and written
here in protobuf's wire format (google/sentencepiece, src/sentencepiece_model.proto), because the message class that the
library ships demands one exact release of protobuf, which others pin too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from corpusforge import errors

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""ModelProto.SentencePiece.Type."""

ALGORITHMS = {"unigram": 1, "bpe": 2}
"""TrainerSpec.ModelType."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_PIECE, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of ModelProto


class Model(NamedTuple):
    """The fields of a model file that decide ids. ``kinds``: NORMAL, UNKNOWN, ... by id; ``charsmap``: b"": none."""

    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    kinds: tuple[int, ...]
    algorithm: str
    charsmap: bytes = b""


def read_model(data: bytes, where: str = "spiece.model") -> Model:
    """Read a model file.

    Raises `errors.ManifestInvalid` if this is not a model, or of an algorithm other than unigram and bpe.
    """
    mend = "use a model written by sentencepiece"
    try:
        fields = list(_fields(data))
        pieces = [dict(_fields(value)) for number, value in fields if number == _PIECE]
        trainer, normalizer = (dict(_fields(dict(fields).get(n, b""))) for n in (_TRAINER, _NORMALIZER))
        names = tuple(piece[1].decode() for piece in pieces)
        scores = tuple(struct.unpack("<f", piece.get(2, b"\0\0\0\0"))[0] for piece in pieces)
        kinds = tuple(piece.get(3, NORMAL) for piece in pieces)
        algorithms = [name for name, number in ALGORITHMS.items() if number == trainer.get(3, 1)]
    except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        raise errors.ManifestInvalid(where, f"no SentencePiece model ({error!r})", mend) from None
    if not names or not algorithms:
        raise errors.ManifestInvalid(where, "no pieces, or neither unigram nor bpe", mend)
    return Model(names, scores, kinds, algorithms[0], normalizer.get(2, b""))


def read_charsmap(data: bytes) -> bytes:
    """The compiled character map of a model, or of the library's normalizer, which has no pieces."""
    charsmap: bytes = dict(_fields(dict(_fields(data)).get(_NORMALIZER, b""))).get(2, b"")
    return charsmap


def write_model(model: Model, special: dict[str, int]) -> bytes:
    """The bytes of a model file; ``special``: ids of "unk", "bos", "eos", "pad", -1 where the model has none."""
    pieces = b"".join(
        _field(_PIECE, _field(1, piece.encode()) + _field(2, struct.pack("<f", score), _FIXED32) + _field(3, kind))
        for piece, score, kind in zip(model.pieces, model.scores, model.kinds, strict=True)
    )
    trainer = _field(3, ALGORITHMS[model.algorithm]) + _field(4, len(model.pieces))
    for number, name in enumerate(("unk", "bos", "eos", "pad")):
        trainer += _field(40 + number, special[name])
    for number, name in enumerate(("unk", "bos", "eos", "pad")):
        if special[name] >= 0:
            trainer += _field(45 + number, model.pieces[special[name]].encode())
    normalizer = _field(1, b"corpusforge" if model.charsmap else b"identity") + _field(2, model.charsmap)
    normalizer += b"".join(_field(number, 1) for number in (3, 4, 5))  # dummy prefix, single spaces, spaces as U+2581
    return pieces + _field(_TRAINER, trainer) + _field(_NORMALIZER, normalizer)


def _field(number: int, value: int | bytes, wire: int | None = None) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    if wire == _FIXED32:
        return _varint(number << 3 | _FIXED32) + value
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers take ten bytes
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value): integers of varints, bytes of all others."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = _read_varint(data, at)
            yield key >> 3, value
            continue
        if wire == _BYTES:
            length, at = _read_varint(data, at)
        elif wire in (_FIXED32, _FIXED64):
            length = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {wire}")
        if at + length > len(data):
            raise ValueError("cut off")
        yield key >> 3, data[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
