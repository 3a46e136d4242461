"""The audited house of core, and a shop on it."""

from tests.core.conftest import house
from tests.queue.shop import shop

__all__ = ["house", "shop"]
