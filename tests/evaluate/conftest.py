"""The evaluation's tests use the trainer's made-up corpus."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "trainer"))

from made_up_instances import make_data, small

__all__ = ["make_data", "small"]
