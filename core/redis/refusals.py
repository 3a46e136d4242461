"""Explains why a server cannot be used: one message per cause, with the remedy. Pure; names no password."""

import ssl

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from core.errors import AdaError, SetupError, StoreUnavailable
from core.redis.connection import ServerAddress

URL_FORM = "redis://user:password@host:6379/0"


def malformed_url(fault: ValueError) -> SetupError:
    return SetupError(f"ADA_REDIS_URL cannot be read: {fault}. It looks like {URL_FORM}.")


def explained(fault: RedisError | OSError | TimeoutError, address: ServerAddress) -> AdaError:
    """StoreUnavailable if waiting may help, else SetupError."""
    text = str(fault) or type(fault).__name__
    if is_about_rights(fault):
        return missing_rights(text, address)
    if isinstance(fault, AuthenticationError | AuthorizationError) or "invalid password" in text.lower():
        return refused_login(text, address)
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
    """The command that gives a user every right Ada uses, and none over the server."""
    return (
        f"redis-cli ACL SETUSER {address.username} '~*' '&*' +@all -@admin -@dangerous +info '+config|get' "
        "'+config|set'"
    )
