"""The pictures of docs/results.md: a training's losses over tokens, and its BLiMP figures by phenomenon.

    python benchmarks/results_plots.py runs/hour --judged runs/hour-judged --losses losses.svg --blimp blimp.svg

Reads log.jsonl of a folder of ``pretrain`` and evaluation.json of a folder of ``evaluate --task blimp``. Draws with
matplotlib, see ``benchmarks/requirements-soak.txt``. In a browser ``corpusforge report`` shows the same and more.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

from corpusforge.report.trainings import curve

matplotlib.use("svg")


def draw_losses(log: list[dict[str, Any]], target: Path) -> None:
    """Training and held-out loss, and the unigram loss."""
    from matplotlib import pyplot

    points = curve(log)
    figure, axis = pyplot.subplots(figsize=(8, 4))
    for key, label, style in (("mlm_loss", "training", "-"), ("heldout_loss", "held-out", "o-")):
        tokens, losses = zip(*points[key], strict=True)
        axis.plot([count / 1e6 for count in tokens], losses, style, label=label, linewidth=1, markersize=3)
    unigram = next(line["unigram"] for line in log if "unigram" in line)
    axis.axhline(unigram, linestyle="--", color="tab:red", label=f"unigram loss, {unigram:.2f}")
    axis.set_xlabel("tokens read, millions")
    axis.set_ylabel("nats per masked token")
    axis.legend()
    figure.tight_layout()
    figure.savefig(target)


def draw_blimp(figures: dict[str, Any], target: Path) -> None:
    """Two bars per phenomenon, one for each form of score, sorted by the first."""
    from matplotlib import pyplot

    names = sorted(figures["phenomena"], key=figures["phenomena"].__getitem__)
    figure, axis = pyplot.subplots(figsize=(8, 5))
    for shift, label, scores in (
        (0.2, "PLL", figures["phenomena"]),
        (-0.2, "PLL-word-l2r", figures["word_l2r"]["phenomena"]),
    ):
        heights = [row + shift for row in range(len(names))]
        axis.barh(heights, [100 * scores[name] for name in names], height=0.38, label=label)
    axis.axvline(50, linestyle="--", color="black", linewidth=1)
    axis.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axis.set_xlabel("% of pairs judged right; the dashed line is chance")
    axis.legend()
    figure.tight_layout()
    figure.savefig(target)


def main() -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--judged", type=Path, required=True)
    parser.add_argument("--losses", type=Path, required=True)
    parser.add_argument("--blimp", type=Path, required=True)
    given = parser.parse_args()
    log = [json.loads(line) for line in (given.run / "log.jsonl").read_text().splitlines()]
    draw_losses(log, given.losses)
    draw_blimp(json.loads((given.judged / "evaluation.json").read_text())["tasks"]["blimp"], given.blimp)


if __name__ == "__main__":
    main()
