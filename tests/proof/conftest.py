"""The audited house of core."""

from tests.core.conftest import house

__all__ = ["house"]
