"""Hypothesis settings of the state machines.

There is no example database: a failure prints its blob for `@reproduce_failure`, and becomes a recorded run in code
(tests/core/queue/test_recorded_runs.py, tests/core/deliveries/test_recorded_runs.py).
"""

from hypothesis import HealthCheck, settings

SETTINGS = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck), database=None)
