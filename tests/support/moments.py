"""Moments for tests of dialogs, as people write them."""

from datetime import UTC, datetime, timedelta

AHEAD = f"{datetime.now(UTC) + timedelta(days=300):%d.%m.%Y} 09:00"
"""Less than a year ahead: a later delivery is asked about (D-51)."""
