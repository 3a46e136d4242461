"""The Sentinels of a primary: their URL, and which server they name."""

from core.redis.sentinels.finding import PrimaryNotFound, ask, find_primary
from core.redis.sentinels.sentinel_set import SentinelSet, is_sentinel_url

__all__ = ["PrimaryNotFound", "SentinelSet", "ask", "find_primary", "is_sentinel_url"]
