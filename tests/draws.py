"""How many examples hypothesis draws: a hundred a law, and many more where only the laws are run.

No law has a deadline, and `make test` draws the same examples every time, so that a busy machine fails nothing.
`make exhaustive` takes the profile of that name: other examples every time, and twenty times as many.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

PROFILE = "test"
"""The profile of a run that names none."""

settings.register_profile(
    PROFILE, deadline=None, derandomize=True, max_examples=100, suppress_health_check=list(HealthCheck)
)
settings.register_profile(
    "exhaustive", deadline=None, max_examples=2000, suppress_health_check=list(HealthCheck), print_blob=True
)


def draws(percent: int) -> settings:
    """Decorator of a law whose examples are costly: draw ``percent`` of the profile's number."""
    return settings(max_examples=max(1, settings.default.max_examples * percent // 100))
