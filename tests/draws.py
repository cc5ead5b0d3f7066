"""How many examples hypothesis draws: a hundred per property, two thousand in `make exhaustive`, twenty in `make fast`.

No property has a deadline, so that no test fails on a busy machine, and `make test` and `make fast` draw the same
examples every time. The profile of `make exhaustive` draws different ones every time.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

PROFILE = "test"
"""The default profile."""

settings.register_profile(
    PROFILE, deadline=None, derandomize=True, max_examples=100, suppress_health_check=list(HealthCheck)
)
settings.register_profile(
    "fast", deadline=None, derandomize=True, max_examples=20, suppress_health_check=list(HealthCheck)
)
settings.register_profile(
    "exhaustive", deadline=None, max_examples=2000, suppress_health_check=list(HealthCheck), print_blob=True
)


def draws(percent: int) -> settings:
    """A decorator for a property whose examples are costly: draw ``percent`` of the profile's number."""
    return settings(max_examples=max(1, settings.default.max_examples * percent // 100))
