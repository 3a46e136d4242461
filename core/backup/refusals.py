"""Explains why a server cannot be backed up or restored. Pure."""

from redis.exceptions import RedisError

from core.errors import AdaError, SetupError, StoreUnavailable
from core.redis.connection import ServerAddress
from core.redis.refusals import explained, is_about_rights

PATIENCE = 60.0
"""Seconds without an answer of the server."""


def explain(fault: RedisError | OSError | TimeoutError, address: ServerAddress, work: str, rights: str) -> AdaError:
    """Return the error for a fault. `work`: what was under way; `rights`: those that it needs beside the usual ones."""
    if is_about_rights(fault):
        return SetupError(
            f"the Redis user {address.username!r} lacks a right that a {work} needs. Grant it as an administrator:"
            f" redis-cli ACL SETUSER {address.username} {rights}"
        )
    if isinstance(fault, TimeoutError):
        return StoreUnavailable(f"Redis at {address} did not answer within {PATIENCE:.0f} s.")
    return explained(fault, address)
