"""Freeze the contents of a finished quickstart run as the golden file: ``python tests/golden/freeze.py RUN_DIR``."""

import json
import sys
from pathlib import Path

STAGES = ("clean", "dedupe", "vocab", "instances")


def main() -> None:
    """Write quickstart.json beside this script."""
    run = Path(sys.argv[1])
    content = {name: json.loads((run / name / "manifest.json").read_text())["content"] for name in STAGES}
    (Path(__file__).parent / "quickstart.json").write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
