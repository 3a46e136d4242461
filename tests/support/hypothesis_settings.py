"""What all state machines are run with. Examples that failed are kept in `tests/core/failures`, and tried first."""

from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

SETTINGS = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
    database=DirectoryBasedExampleDatabase(Path(__file__).parents[1] / "hypothesis_failures"),
)
