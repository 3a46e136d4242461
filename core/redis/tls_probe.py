"""Finds out whether a port that cannot be used speaks TLS, contrary to its URL. Called by `core.redis.store`."""

import asyncio
import ssl

from core.redis.connection import ServerAddress

_TIMEOUT = 5.0


async def is_scheme_wrong(address: ServerAddress) -> bool:
    """Return whether the port answers like Redis without TLS although the URL says rediss://, or with TLS although it
    says redis://. The login is not sent.
    """
    if address.path:
        return False
    try:
        async with asyncio.timeout(_TIMEOUT):
            return (await _answer(address.host, address.port, None if address.tls else _unverified())).startswith(
                (b"+", b"-")
            )
    except (OSError, TimeoutError):
        return False


async def _answer(host: str, port: int, tls: ssl.SSLContext | None) -> bytes:
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        writer.write(b"PING\r\n")
        return await reader.readline()
    finally:
        writer.transport.abort()


def _unverified() -> ssl.SSLContext:
    """Return a context that accepts any certificate: nothing but PING is sent."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
