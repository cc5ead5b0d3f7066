"""Run the golden cases and write their results: ``python tests/golden/freeze.py FOLDER [CASE ...]``.

``FOLDER`` keeps the runs, so that a case can be looked at or done again alone. Writes ``digests.json`` and
``losses.json`` beside this script; with ``--quickstart RUN`` the contents of a finished quickstart instead. Whoever
freezes again says in the commit why the result is another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(HERE.parent)]

from tests.golden.cases import STAGES, TRAIN, Case  # noqa: E402
from tests.golden.corpus import write_corpus  # noqa: E402
from tests.golden.digests import digests, losses  # noqa: E402

QUICKSTART = ("clean", "dedupe", "vocab", "instances")


def run_case(case: Case, folder: Path, shared: Path) -> Path:
    """Run one case into ``folder``/its name, reading earlier ones from there; returns where it lies."""
    names = {path.name: str(path) for path in folder.iterdir() if path.is_dir()}
    words = case.command(names | {"raw": str(folder / "raw"), "shared": str(shared)}, str(folder / case.name))
    environment = os.environ | {"NLTK_DATA": str(shared / "nltk_data"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "corpusforge", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case.name}: {' '.join(command)}\n{done.stderr}")
    return folder / case.name


def main() -> None:
    """Freeze all cases, or those named."""
    if sys.argv[1] == "--quickstart":
        run = Path(sys.argv[2])
        content = {name: json.loads((run / name / "manifest.json").read_text())["content"] for name in QUICKSTART}
        (HERE / "quickstart.json").write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
        return
    folder, chosen = Path(sys.argv[1]), set(sys.argv[2:])
    shared = ROOT.parent / "shared" / "data"
    write_corpus(shared, folder / "raw")
    for name, cases, measure in (("digests.json", STAGES, digests), ("losses.json", TRAIN, losses)):
        path = HERE / name
        frozen = json.loads(path.read_text()) if path.exists() else {}
        for case in cases:
            if not chosen or case.name in chosen:
                print(case.name, flush=True)
                frozen[case.name] = measure(run_case(case, folder, shared))
        path.write_text(json.dumps(frozen, indent=1) + "\n")


if __name__ == "__main__":
    main()
