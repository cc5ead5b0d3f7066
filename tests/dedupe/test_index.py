"""Signature tables, and datasketch reading what CorpusForge signed."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from corpusforge import errors
from corpusforge.dedupe.index import (
    check_signer,
    datasketch_seed,
    read_signer,
    signature_matrix,
    signature_rows,
    signatures_schema,
    to_datasketch,
)
from corpusforge.dedupe.minhash import Signer
from corpusforge.sentences.splitter import sentence_spans
from tests.oracles import minhash as oracle


def near_copies(count: int) -> list[str]:
    """Texts of 120 words; every second one is the one before with three words changed."""
    draw = random.Random(7)
    texts: list[str] = []
    for number in range(count):
        words = texts[-1].split() if number % 2 else [f"w{draw.randrange(5000)}" for _ in range(120)]
        if number % 2:
            for _ in range(3):
                words[draw.randrange(120)] = "other"
        texts.append(" ".join(words))
    return texts


def signed(texts: list[str], signer: Signer) -> pa.RecordBatch:
    signatures, real = signer.sign(signer.shingles(sentence_spans(pa.array(texts, pa.string()))).document_sets())
    return signature_rows(pa.array([f"d{i}" for i in range(len(texts))]), signatures, real, signer)


def test_a_table_states_how_it_was_signed(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import pyarrow.parquet as pq

    signer = Signer(permutations=32, shingle_words=3, seed=5)
    rows = signed(["", "one two three four", "..."], signer)
    assert rows.column("document").to_pylist() == ["d1"]
    pq.write_table(pa.Table.from_batches([rows]), tmp_path / "signatures.parquet")
    back = pq.read_table(tmp_path / "signatures.parquet").to_batches()[0]
    assert read_signer(back.schema, "x") == signer
    assert (signature_matrix(back) == signature_matrix(rows)).all()
    check_signer(back.schema, signer, "x")
    assert (signature_matrix(back.slice(1)).shape) == (0, 32)


def test_other_parameters_are_refused() -> None:
    schema = signatures_schema(Signer(permutations=64))
    with pytest.raises(errors.StageMismatch, match="signed with permutations 64, not 128"):
        check_signer(schema, Signer(permutations=128), "here")
    with pytest.raises(errors.StageMismatch, match="does not state"):
        read_signer(pa.schema([pa.field("document", pa.string())]), "here")


def test_datasketch_compares_and_queries_what_was_signed_here() -> None:
    datasketch = pytest.importorskip("datasketch")
    texts, signer = near_copies(400), Signer(permutations=128)
    rows = signed(texts, signer)
    minhashes = to_datasketch(rows)
    matrix = signature_matrix(rows)
    index = datasketch.MinHashLSH(threshold=0.7, num_perm=128)
    for name, minhash in minhashes.items():
        index.insert(name, minhash)
    truths, estimates, met = [], [], 0
    for i in range(0, 400, 2):
        left, right = minhashes[f"d{i}"], minhashes[f"d{i + 1}"]
        assert left.jaccard(right) == pytest.approx((matrix[i] == matrix[i + 1]).mean())
        sets = [oracle.shingles(oracle.split_words(texts[k]), 5) for k in (i, i + 1)]
        truths.append(oracle.jaccard(*sets))
        estimates.append(left.jaccard(right))
        met += f"d{i + 1}" in index.query(left)
        assert left == datasketch.LeanMinHash.deserialize(left_bytes(left))
    truth, error = np.array(truths), np.array(estimates) - np.array(truths)
    deviations = np.sqrt(truth * (1 - truth) / 128)
    assert abs(error.mean()) < 4 * deviations.mean() / np.sqrt(len(error))
    bands, width = index.b, index.r
    theory = np.mean(1 - (1 - truth**width) ** bands)
    assert abs(met / 200 - theory) < 4 * np.sqrt(0.25 / 200)


def left_bytes(minhash) -> bytearray:  # type: ignore[no-untyped-def]
    buffer = bytearray(minhash.bytesize())
    minhash.serialize(buffer)
    return buffer


def test_datasketch_refuses_to_compare_with_its_own_signatures() -> None:
    datasketch = pytest.importorskip("datasketch")
    ours = to_datasketch(signed(["one two three four five six"], Signer(permutations=16)))["d0"]
    with pytest.raises(ValueError, match="seed"):
        ours.jaccard(datasketch.MinHash(num_perm=16, scheme="affine32"))
    assert datasketch_seed(Signer()) != datasketch_seed(Signer(seed=1))
    assert datasketch_seed(Signer()) < 2**63
