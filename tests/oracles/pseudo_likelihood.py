"""Pseudo-log-likelihoods as plainly as possible: one sentence, one token, one forward pass of transformers."""

from __future__ import annotations

from typing import Any

import torch


def score(model: Any, tokenizer: Any, sentence: str, form: str) -> float:
    """The score of one sentence, by a masked language model of transformers."""
    encoded = tokenizer(sentence, return_tensors="pt")
    ids, words, total = encoded["input_ids"], encoded.word_ids(0), 0.0
    for at in range(1, ids.shape[1] - 1):
        changed = ids.clone()
        changed[0, at] = tokenizer.mask_token_id
        if form == "word_l2r":
            for later in range(at + 1, ids.shape[1] - 1):
                if words[later] == words[at]:
                    changed[0, later] = tokenizer.mask_token_id
        with torch.no_grad():
            total += float(model(changed).logits[0, at].log_softmax(-1)[ids[0, at]])
    return total
