"""The plateau at the unigram entropy: "loss 7", the most asked question of the field.

Comes in: the log lines of a run, in order. Goes out: one warning that names likely causes, at most. Decision: every
model stands at that line for a while, so what counts is that none of the lines of a whole stretch of the run was below.
"""

from __future__ import annotations

from typing import Any

BEGINS, ENDS = 0.1, 0.2
"""The stretch, as shares of the run. Published curves leave the line within 1 % of it, short runs later. Ours."""
LEAST_STEPS = 200
"""Before so many steps nothing is said. Ours."""
MARGIN = 0.1
"""Nats below the line from which a model has learned more than frequencies: a few times the noise of a log line."""


class Plateau:
    """Watches a run whose words have the entropy ``line``."""

    def __init__(self, line: float) -> None:
        self.line = line
        self._stood_since: int | None = None
        self._is_over = False  # the line was crossed, or the warning given

    def watch(self, values: dict[str, Any], progress: float, *, is_warming_up: bool) -> str | None:
        """A log line, and how much of the run lies behind; a warning to be shown, or None."""
        if self._is_over or is_warming_up or progress < BEGINS or values.get("mlm_loss") is None:
            return None
        if values["mlm_loss"] < self.line - MARGIN:
            self._is_over = True
            return None
        if self._stood_since is None:
            self._stood_since = values["step"]
        if progress < ENDS or values["step"] < LEAST_STEPS:
            return None
        self._is_over = True
        return self._words(values)

    def _words(self, values: dict[str, Any]) -> str:
        return (
            f"the MLM loss ({values['mlm_loss']:.2f}) has not left the unigram entropy of the corpus "
            f"({self.line:.2f}) since step {self._stood_since}: so far the model knows how often words are, and "
            "nothing else. Likely causes: repeated documents or lines (is the corpus deduplicated?); a vocabulary that "
            "is not the corpus's own (look at the share of [UNK] in the report); a learning rate too high for this "
            "size or batch, or too low (try a third, and three times as much, and a longer warm-up)"
        )
