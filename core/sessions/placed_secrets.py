"""Secrets and ids that name the shard of their record, `<shard>.<random>`: who presents one names no tenant. Pure."""

import re
import secrets

_PLACED = re.compile(r"(\d{1,5})\.", re.ASCII)


def new_secret(shard: int, random_bytes: int) -> str:
    """Return a random text for a record in this shard; it is fit for a URL and a cookie."""
    return f"{shard}.{secrets.token_urlsafe(random_bytes)}"


def shard_in(secret: str, shards: int) -> int:
    """Return the shard that a secret names; 0 if it names none that exists, and then no record is found there."""
    found = _PLACED.match(secret)
    shard = int(found[1]) if found else 0
    return shard if shard < shards else 0
