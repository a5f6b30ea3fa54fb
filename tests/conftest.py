"""Settings of the whole suite. Hypothesis draws the same examples every time, so that a red run is red again."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "lapwing", deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck), database=None
)
settings.load_profile("lapwing")
