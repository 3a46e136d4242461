"""Explains why a server cannot be used: one message per cause, with the remedy. Pure; names no password."""

import ssl

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from core.errors import AdaError, SetupError, StoreFull, StoreRefuses, StoreUnavailable
from core.redis.connection import ServerAddress

URL_FORM = "redis://user:password@host:6379/0"

_REFUSED_WRITES = {
    "MISCONF": (
        "STORE_CANNOT_SAVE",
        "Redis refuses writes because it cannot save to its disk (MISCONF): free space on the disk of the server, and "
        "look into its log.",
    ),
    "READONLY": (
        "STORE_READ_ONLY",
        "Redis refuses writes because it is a replica (READONLY): let ADA_REDIS_URL name the primary, or promote this "
        "server with REPLICAOF NO ONE.",
    ),
    "MASTERDOWN": ("STORE_READ_ONLY", "Redis is a replica without its primary (MASTERDOWN): repair the replication."),
    "NOREPLICAS": (
        "STORE_WITHOUT_REPLICAS",
        "Redis refuses writes because too few replicas follow it (NOREPLICAS): repair them, or lower "
        "min-replicas-to-write.",
    ),
    "CLUSTERDOWN": ("STORE_CLUSTER_DOWN", "The Redis cluster is down (CLUSTERDOWN): repair it."),
    "TRYAGAIN": ("STORE_CLUSTER_DOWN", "The Redis cluster moves slots (TRYAGAIN): this passes."),
    "MOVED": (
        "STORE_CLUSTER_DOWN",
        "Another node of the Redis cluster has the data (MOVED): let ADA_REDIS_URL begin with redis+cluster://.",
    ),
    "ASK": ("STORE_CLUSTER_DOWN", "The Redis cluster moves slots (ASK): this passes."),
}
"""The first word of a server's error → code and sentence. The server is in a state in which it writes nothing."""

_PASSING = frozenset(_REFUSED_WRITES) - {"MISCONF"}
"""States of a fail-over: they pass by themselves, or another server is the primary."""

_OF_A_SLOT = frozenset({"ASK", "CLUSTERDOWN", "MOVED", "TRYAGAIN"})


def malformed_url(fault: ValueError) -> SetupError:
    return SetupError(f"REDIS_URL_MALFORMED: ADA_REDIS_URL cannot be read: {fault}. It looks like {URL_FORM}.")


def explained(fault: RedisError | OSError | TimeoutError, address: ServerAddress) -> AdaError:
    """Return StoreUnavailable if waiting may help, else SetupError."""
    text = str(fault) or type(fault).__name__
    if is_about_rights(fault):
        return missing_rights(text, address)
    if isinstance(fault, AuthenticationError | AuthorizationError) or "invalid password" in text.lower():
        return refused_login(text, address)
    if refused := refused_write(fault):
        return StoreUnavailable(str(refused))
    if isinstance(fault, ResponseError):
        return refused_command(text, address)
    if isinstance(fault, ssl.SSLCertVerificationError):
        return SetupError(
            f"The certificate of Redis at {address} is not accepted: {fault.verify_message}. Name its authority in "
            "ADA_REDIS_URL with ?ssl_ca_certs=FILE."
        )
    if isinstance(fault, BusyLoadingError):
        text = "it is still loading its data"
    return StoreUnavailable(
        f"No Redis at ADA_REDIS_URL ({address}): {text}. Start it, or unset ADA_REDIS_URL to use the embedded one."
    )


def refused_write(fault: Exception) -> StoreRefuses | None:
    """Return the error for a server that writes nothing at present; None if the error is another one."""
    if isinstance(fault, OutOfMemoryError):
        return StoreFull()
    found = _REFUSED_WRITES.get(_first_word(fault))
    return StoreRefuses(*found) if found else None


def may_pass(fault: Exception) -> bool:
    """Return whether an error reply means a state that ends with a fail-over."""
    return _first_word(fault) in _PASSING


def is_about_slot(fault: Exception) -> bool:
    """Return whether an error reply is about the slot of its key: other slots of the server may work."""
    return _first_word(fault) in _OF_A_SLOT


def _first_word(fault: Exception) -> str:
    return str(fault).partition(" ")[0].rstrip(":")


def wrong_scheme(address: ServerAddress) -> SetupError:
    """Return the error for a URL that demands TLS of a port without TLS, or the other way round."""
    if address.tls:
        return SetupError(f"Redis at {address} does not speak TLS. Begin ADA_REDIS_URL with redis:// instead.")
    return SetupError(f"Redis at {address} speaks TLS only. Begin ADA_REDIS_URL with rediss:// instead.")


def is_about_rights(fault: Exception) -> bool:
    return isinstance(fault, NoPermissionError) or str(fault).startswith("NOPERM")


def refused_login(text: str, address: ServerAddress) -> SetupError:
    if not address.password:
        return SetupError(f"Redis at {address} needs a password. Add it to ADA_REDIS_URL: {URL_FORM}.")
    if text.startswith("NOAUTH"):  # although HELLO carried a password: newer servers look at the login first
        return without_hello(address)
    return SetupError(
        f"Redis at {address} refuses the password of user {address.username!r} ({text}). Correct ADA_REDIS_URL: "
        f"{URL_FORM}."
    )


def without_hello(address: ServerAddress) -> SetupError:
    return SetupError(
        f"The server at {address} does not know HELLO 3. Ada needs Redis 7.0 or Valkey, without a proxy that hides "
        "commands."
    )


def refused_command(text: str, address: ServerAddress) -> SetupError:
    if "unknown command" in text.lower() or "NOPROTO" in text:
        return without_hello(address)
    if "DB index" in text:
        return SetupError(
            f"Redis at {address} has no database {address.database}. Give ADA_REDIS_URL a smaller number, for example "
            "/0, or raise `databases` of the server."
        )
    return SetupError(f"Redis at {address} refuses the connection: {text}.")


def missing_rights(text: str, address: ServerAddress) -> SetupError:
    return SetupError(
        f"The Redis user {address.username!r} lacks a right that Ada needs: {text.removeprefix('NOPERM ')}. Grant it "
        f"as an administrator: {grant(address)}"
    )


def grant(address: ServerAddress) -> str:
    """Return the command that gives a user every right Ada uses, and none over the server."""
    return (
        f"redis-cli ACL SETUSER {address.username} '~*' '&*' +@all -@admin -@dangerous +info '+config|get' "
        "'+config|set'"
    )
