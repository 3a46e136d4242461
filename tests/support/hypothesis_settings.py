"""Hypothesis settings of the state machines.

There is no example database: a failure prints its blob for `@reproduce_failure`, and becomes a recorded run in code
(tests/core/queue/test_recorded_runs.py, tests/core/deliveries/test_recorded_runs.py).
"""

from hypothesis import HealthCheck, Phase, settings

SETTINGS = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck), database=None)

WITHOUT_SHRINKING = settings(SETTINGS, phases=(Phase.explicit, Phase.generate))
"""For a machine whose examples wait for something: a failure that takes its whole limit is repeated for minutes while
it is shrunk, and all that is seen is the limit of the test. The blob shrinks it: `@reproduce_failure`."""
