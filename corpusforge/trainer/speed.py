"""How fast a run goes, measured between two log lines on the host's clock.

Nothing here waits for the device: `log.Meter.read` has done so right before a line is written.
"""

from __future__ import annotations

import time

import torch

from corpusforge.trainer import plan


class Speed:
    """Counts tokens from one log line to the next."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._began, self._tokens, self._waited = time.perf_counter(), 0, 0.0

    def add(self, tokens: int) -> None:
        """Count a step's tokens, padding not counted."""
        self._tokens += tokens

    def read(self, waited: float, flops_per_token: float) -> dict[str, float | None]:
        """Figures since the last call; ``waited``: seconds the loop has waited for data in its whole life.

        ``mfu`` is the share of the device's peak FLOPs, null where that is not known; ``memory`` is in bytes.
        """
        now, peak = time.perf_counter(), plan.peak_flops(self._device)
        seconds = max(now - self._began, 1e-9)
        speed, data_wait = self._tokens / seconds, (waited - self._waited) / seconds
        self._began, self._tokens, self._waited = now, 0, waited
        return {
            "tokens_per_second": speed,
            "mfu": speed * flops_per_token / peak if peak else None,
            "data_wait": data_wait,
            "memory": plan.peak_memory(self._device),
        }
