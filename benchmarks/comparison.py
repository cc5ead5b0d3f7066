"""Masks and formats compared at small scale: the questions of RoBERTa's tables 1 and 2, each with several seeds.

    python benchmarks/comparison.py masks /data/masks --corpus small --vocab vocab --blimp blimp-data.tar.gz
    python benchmarks/comparison.py formats /data/formats --corpus deduped --vocab vocab --blimp blimp-data.tar.gz

``masks`` trains on doc-sentences with static masks, ten copies with different masks, and dynamic masks; they differ
only on a corpus that is read several times. ``formats`` trains on segment-pair, sentence-pair, full-sentences and
doc-sentences, with dynamic masks. Every run has the same number of tokens and is evaluated on the same two things: the
loss on held-out doc-sentences (the same documents, masked once), and the fast form of BLiMP. A small model spends
millions of tokens at the unigram loss, where no difference shows: ``--init`` starts all runs from one checkpoint past
it. Each command is one that a user would type, in its own process; ``--jobs`` of them run at once, with a core each.
Finished ones are not repeated. Prints the mean over seeds and the lowest and highest, and writes FOLDER/results.json;
``--plot`` draws it (matplotlib, see ``benchmarks/requirements-soak.txt``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

ARMS = {
    "masks": {
        "static": ("doc-sentences", "static"),
        "duplicated": ("doc-sentences", "duplicated"),
        "dynamic": ("doc-sentences", "dynamic"),
    },
    "formats": {
        name: (name, "dynamic") for name in ("segment-pair", "sentence-pair", "full-sentences", "doc-sentences")
    },
}
"""Question -> what is compared -> (format, masks) of its instances."""

JUDGE = "judge"  # the folder of the instances whose held-out part every arm is evaluated on
_printing = threading.Lock()


def corpusforge(*words: object) -> None:
    """Run one command of CorpusForge; its output is shown if it fails."""
    command = [sys.executable, "-m", "corpusforge", *map(str, words), "--quiet"]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    with _printing:
        print(f"{time.monotonic() - began:6.0f} s  {' '.join(command[3:6])}", flush=True)


def instances(given: argparse.Namespace) -> None:
    """Build the instances that the arms read, and those they are evaluated on."""
    arms = {**ARMS[given.question], JUDGE: ("doc-sentences", "dynamic")}
    for name, (form, masks) in arms.items():
        corpusforge(
            *("build-instances", given.corpus, "--vocab", given.vocab, "--output", given.folder / f"instances-{name}"),
            *("--format", form, "--masking", masks, "--length", given.length, "--heldout", given.heldout),
        )


def train_and_evaluate(given: argparse.Namespace, name: str, seed: int) -> dict[str, float]:
    """One run of one arm, from its instances to its results."""
    run = given.folder / f"run-{name}-{seed}"
    corpusforge(
        *("pretrain", given.folder / f"instances-{name}", "--output", run, "--seed", seed),
        *("--preset", given.preset, "--steps", given.steps, "--batch-tokens", given.batch_tokens),
        *("--micro-batch-tokens", given.batch_tokens, "--learning-rate", given.learning_rate, "--short-share", 0),
        *("--precision", given.precision, "--set", "pretrain.dropout=0", "--set", f"pretrain.threads={given.threads}"),
        *("--warmup-steps", given.steps // 16, *(("--init", given.init) if given.init else ())),
        *("--evaluate-steps", given.steps, "--checkpoint-steps", given.steps, "--set", "pretrain.tensorboard=false"),
    )
    corpusforge(
        *("evaluate", run, "--output", f"{run}-judged", "--task", "mlm,blimp", "--blimp-data", given.blimp),
        *("--data", given.folder / f"instances-{JUDGE}"),
    )
    tasks = json.loads(Path(f"{run}-judged", "evaluation.json").read_text())["tasks"]
    return {
        "loss": tasks["mlm"]["loss"],
        "unigram": tasks["mlm"]["unigram_loss"],
        "blimp": 100 * tasks["blimp"]["accuracy"],
        "blimp_l2r": 100 * tasks["blimp"]["word_l2r"]["accuracy"],
    }


FIGURES = {"loss": "held-out loss", "blimp": "BLiMP, PLL", "blimp_l2r": "BLiMP, PLL-word-l2r"}


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """Markdown: mean over seeds, and in brackets the lowest and highest."""
    lines = ["| | " + " | ".join(FIGURES.values()) + " |", "|---|" + "---|" * len(FIGURES)]
    for name, runs in results.items():
        cells = []
        for figure in FIGURES:
            values, digits = [run[figure] for run in runs], 3 if figure == "loss" else 1
            cells.append(f"{statistics.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(results: dict[str, list[dict[str, float]]], target: Path) -> None:
    """A dot for each seed and a bar at the mean."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(FIGURES), figsize=(10, 1 + 0.4 * len(results)), sharey=True)
    for axis, (key, title) in zip(axes, FIGURES.items(), strict=True):
        for row, runs in enumerate(results.values()):
            values = [run[key] for run in runs]
            axis.plot(values, [row] * len(values), "o", alpha=0.6)
            axis.plot([statistics.mean(values)], [row], "|", color="black", markersize=18)
        axis.set_title(title)
    axes[0].set_yticks(range(len(results)), list(results))
    axes[0].invert_yaxis()
    figure.tight_layout()
    figure.savefig(target)


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=list(ARMS))
    parser.add_argument("folder", type=Path, help="for instances, runs and results.json")
    parser.add_argument("--corpus", type=Path, required=True, help="a folder of clean or dedupe")
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--blimp", type=Path, required=True, help="BLiMP's folder or .tar.gz")
    parser.add_argument("--preset", default="bert-tiny")
    parser.add_argument("--init", type=Path, help="a model to start from, past the plateau at the unigram loss")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--heldout", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    given.threads = max(1, (os.cpu_count() or 1) // given.jobs)
    return given


def main() -> None:
    """Build, train, evaluate, print."""
    given = arguments()
    os.environ.update(OMP_NUM_THREADS=str(given.threads))  # `evaluate` takes no number of threads
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"
    )
    print(
        f"{given.preset}, {given.steps:,} steps of {given.batch_tokens:,} tokens, {given.precision}, on {given.corpus}"
    )
    instances(given)
    arms = list(ARMS[given.question])
    # Seeds outermost: if the machine is stopped, every arm has the same number of runs.
    wanted = [(name, seed) for seed in range(given.seeds) for name in arms]
    with ThreadPoolExecutor(given.jobs) as pool:
        figures = list(pool.map(lambda run: train_and_evaluate(given, *run), wanted))
    results = {name: [f for (arm, _), f in zip(wanted, figures, strict=True) if arm == name] for name in arms}
    (given.folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nunigram loss {figures[0]['unigram']:.3f}; mean of {given.seeds} seeds (lowest to highest)\n")
    print(table(results))
    if given.plot:
        plot(results, given.plot)


if __name__ == "__main__":
    main()
