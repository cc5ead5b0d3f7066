"""The golden runs: every dedupe method, format, mask unit, masking and family of vocabulary, as command lines.

A case reads what earlier ones left (``{name}`` stands for the folder of case ``name``, ``{raw}`` for the corpus,
``{shared}`` for the real data). Command lines, not functions: they outlive any change of the house.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import NamedTuple


class Case(NamedTuple):
    """A run of one command; ``words`` without its ``--output``."""

    name: str
    words: tuple[str, ...]

    @property
    def reads(self) -> set[str]:
        """Names of the folders the command line refers to."""
        return {name for word in self.words for _, name, _, _ in string.Formatter().parse(word) if name}

    def command(self, folders: Mapping[str, str], output: str) -> list[str]:
        """The command line with the folders it reads and the one it writes."""
        return [*(word.format_map(folders) for word in self.words), "--output", output, "--quiet"]


def _case(name: str, line: str) -> Case:
    return Case(name, tuple(line.split()))


CLEAN = [
    _case(
        "clean-c4",
        "clean {raw} --rules c4-tfds-3.1 --language en --sentences punkt --badwords {shared}/badwords/LDNOOBW",
    ),
    _case("clean-open", "clean {raw}/wiki.jsonl {raw}/wiki-again.jsonl {raw}/dumps.jsonl {raw}/dolma.jsonl "
          "--rules gopher --language= --badwords off --sentences builtin"),
    _case("clean-packs", "clean {raw} --rules mc4,fineweb --detector fast --badwords off --sentences builtin "
          "--pii mask"),
    _case("clean-newest", "clean {raw} --rules c4-paper --language= --badwords off --sentences builtin "
          "--duplicates newest"),
    _case("clean-chinese", "clean {raw}/chinese.jsonl --rules c4-zh --language= --badwords off"),
]  # fmt: skip

DEDUPE = [
    _case("lines", "dedupe {clean-open} --method lines --sentences builtin"),
    _case("exact-spans", "dedupe {clean-open} --method exact-spans"),
    _case("exact-longest", "dedupe {clean-open} --method exact-spans --keep longest --fold-numbers"),
    _case("near-spans", "dedupe {clean-open} --method near-spans"),
    _case("documents", "dedupe {clean-open} --method documents --export-signatures"),
    _case("documents-newest", "dedupe {clean-open} --method documents --keep newest --threshold 0.6"),
    _case("chain", "dedupe {clean-open} --method lines,exact-spans,documents --sentences builtin"),
    _case("indexed", "dedupe {clean-newest} --method documents --index {documents}"),
]

VOCAB = [
    _case("wordpiece", "train-vocab {exact-spans} --size 2048 --unused 64"),
    _case("likelihood", "train-vocab {exact-spans} --model wordpiece-likelihood --size 1024 --unused 0"),
    _case("bpe", "train-vocab {exact-spans} --model bpe --cased --size 2048 --unused 0"),
    _case("unigram", "train-vocab {exact-spans} --model unigram --size 2048 --unused 0"),
    _case("sentencepiece-bpe", "train-vocab {exact-spans} --model sentencepiece-bpe --cased --size 2048 --unused 0"),
]

_BUILD = "build-instances {exact-spans} --heldout 0.05 --vocab "

INSTANCES = [
    _case("doc-token", _BUILD + "{wordpiece} --format doc-sentences --masking static"),
    _case("doc-dynamic", _BUILD + "{bpe} --format doc-sentences --masking dynamic --mask-unit token"),
    _case("doc-words", _BUILD + "{wordpiece} --format doc-sentences --masking static --mask-unit whole-word"),
    _case("doc-ngram", _BUILD + "{unigram} --format doc-sentences --masking duplicated --copies 2 --mask-unit ngram"),
    _case("doc-span", _BUILD + "{wordpiece} --format doc-sentences --masking static --mask-unit span"),
    _case("full-span", _BUILD + "{wordpiece} --format full-sentences --masking dynamic --mask-unit span"),
    _case("full-token", _BUILD + "{bpe} --format full-sentences --masking static --max-predictions 12"),
    _case("pair-static", _BUILD + "{wordpiece} --format segment-pair --masking static --max-predictions 20"),
    _case("pair-copies", _BUILD + "{wordpiece} --format segment-pair --masking duplicated --copies 3 "
          "--pair-sampling original --long-sentences truncate"),
    _case("sentence-pair", _BUILD + "{wordpiece} --format sentence-pair --masking static --heldout-by url"),
    _case("sop-ngram", _BUILD + "{unigram} --format sop --masking dynamic --mask-unit ngram"),
    _case("sop-token", _BUILD + "{sentencepiece-bpe} --format sop --masking static --long-sentences drop"),
]  # fmt: skip

_TRAIN = (
    " --steps 60 --batch-tokens 2048 --micro-batch-tokens 1024 --warmup-steps 10 --learning-rate 1e-3 --device cpu "
    "--short-length 64 --short-share 0.5 --log-steps 1 --evaluate-steps 30 --checkpoint-steps 60 --precision fp32"
)

TRAIN = [
    _case("bert", "pretrain {pair-static} --preset bert-tiny" + _TRAIN),
    _case("roberta", "pretrain {doc-dynamic} --preset roberta-tiny" + _TRAIN),
    _case("albert", "pretrain {sop-ngram} --preset albert-tiny" + _TRAIN),
    _case("spanbert", "pretrain {full-span} --preset spanbert-tiny" + _TRAIN),
]

STAGES = [*CLEAN, *DEDUPE, *VOCAB, *INSTANCES]
