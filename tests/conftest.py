"""One profile for all property tests: machines differ in speed, properties do not."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dpsubset", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
# pytest --hypothesis-profile=thorough, when a module has changed a lot.
settings.register_profile("thorough", settings.get_profile("dpsubset"), max_examples=1500)
settings.load_profile("dpsubset")
