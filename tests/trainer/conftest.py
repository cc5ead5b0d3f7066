"""Fixtures of the trainer's tests."""

from made_up_instances import make_data, small

__all__ = ["make_data", "small"]
