"""doc-sentences, one sentence at a time."""

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
