"""doc-sentences and full-sentences, one sentence at a time."""

from __future__ import annotations


def doc_sentences(sentences: list[list[int]], length: int) -> list[list[int]]:
    """Blocks of whole sentences of at most ``length - 2`` tokens; longer sentences are cut and continued."""
    room, blocks, block = length - 2, [], []
    for sentence in sentences:
        pieces = [sentence[i : i + room] for i in range(0, len(sentence), room)]
        for piece in pieces:
            if len(block) + len(piece) > room:
                blocks.append(block)
                block = []
            block = block + piece
    return [*blocks, block] if block else blocks


def full_sentences(documents: list[list[list[int]]], length: int, separator: int) -> list[list[int]]:
    """The same across documents, with ``separator`` between two of them inside a block."""
    room, blocks, block = length - 2, [], []
    for document in documents:
        new = bool(block)
        for sentence in document:
            for piece in [sentence[i : i + room] for i in range(0, len(sentence), room)]:
                between = [separator] if new and block else []
                if len(block) + len(between) + len(piece) > room:
                    blocks.append(block)
                    block, between = [], []
                block, new = block + between + piece, False
    return [*blocks, block] if block else blocks
