"""BLiMP by `corpusforge.evaluate` and by transformers on the same model: sentences a second, and how far scores differ.

    python benchmarks/blimp.py CHECKPOINT BLIMP [PAIRS]

CHECKPOINT: a Hugging Face directory; BLIMP: the folder of .jsonl or the .tar.gz; PAIRS of each paradigm (default 3).
The peer scores one sentence at a time, its masked copies as a batch, as minicons does (original form and
PLL-word-l2r each in a separate pass); ours scores both forms at once. Both run on one thread, in float32, alternating;
times are medians of three, in processor seconds.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
import transformers

from corpusforge.evaluate.blimp import read_pairs
from corpusforge.evaluate.likelihood import FORMS, pseudo_log_likelihoods, questions, tokenize
from corpusforge.loader.batcher import load_specials
from corpusforge.trainer.hf_folder import load_model

ROUNDS = 3


@torch.no_grad()
def peer_scores(model: torch.nn.Module, tokenizer: object, sentences: list[str], form: str) -> np.ndarray:
    """Scores by transformers."""
    scores = []
    for sentence in sentences:
        encoded = tokenizer(sentence, return_tensors="pt")  # type: ignore[operator]
        ids, words = encoded["input_ids"][0], np.array([-1 if w is None else w for w in encoded.word_ids(0)])
        at = torch.arange(1, len(ids) - 1)
        copies = ids.repeat(len(at), 1)
        masks = torch.zeros(copies.shape, dtype=torch.bool)
        masks[torch.arange(len(at)), at] = True
        if form == "word_l2r":
            same = torch.from_numpy(words[at][:, None] == words[None])
            masks |= same & (torch.arange(len(ids)) > at[:, None])
        logits = model(copies.masked_fill(masks, tokenizer.mask_token_id)).logits  # type: ignore[attr-defined]
        log_probabilities = logits[torch.arange(len(at)), at].log_softmax(-1)
        scores.append(float(log_probabilities.gather(1, ids[at][:, None]).double().sum()))
    return np.array(scores)


def main() -> None:
    """Measure and print."""
    folder, data = Path(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    torch.set_num_threads(1)
    pairs = read_pairs(data, count)
    sentences = list(dict.fromkeys(s for pair in pairs for s in (pair.good, pair.bad)))
    own, mask = load_model(folder), load_specials(str(folder)).mask
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        began = time.process_time()
        tokens = tokenize(folder, sentences, own.shape.longest)
        ours = pseudo_log_likelihoods(own, tokens, mask, batch_tokens=16_384, device=torch.device("cpu"))
        times["ours"].append(time.process_time() - began)
        began = time.process_time()
        peer = {form: peer_scores(model, tokenizer, sentences, form) for form in FORMS}
        times["theirs"].append(time.process_time() - began)
    difference = max(float(np.abs(ours[form] - peer[form]).max()) for form in FORMS)
    asked = sum(len(group.row) for group in questions(tokens, mask))
    rows = sum(len(group.rows) for group in questions(tokens, mask))
    print(f"{platform.processor() or platform.machine()}, one thread; Python {platform.python_version()}, "
          f"torch {torch.__version__}, transformers {transformers.__version__}")  # fmt: skip
    print(f"{len(sentences):,} sentences of {len(pairs):,} pairs, {own.shape.layers} layers of {own.shape.width}; "
          f"both forms ask {asked:,} times, of {rows:,} distinct rows")  # fmt: skip
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    for name, seconds in medians.items():
        print(f"{name:>7}: {seconds:7.2f} processor seconds, {len(sentences) / seconds:8.1f} sentences a second")
    ratio = medians["theirs"] / medians["ours"]
    print(f"ours in 1/{ratio:.2f} of the time; scores differ by at most {difference:.1e} nats")


if __name__ == "__main__":
    main()
