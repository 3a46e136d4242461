"""One call of an outside service whose address is in the settings: no redirect, bounded time and size.

A redirect is not followed, because what is sent is secret.
"""

from collections.abc import Mapping

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

from core.errors import AdaError

_LARGEST = 64 * 1024


class ServiceUnavailable(AdaError):
    """The service did not answer as such an address does. Trying again may help."""


async def call_service(
    method: str,
    url: str,
    seconds: float,
    *,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Return status and text of the response. Raises ServiceUnavailable, also for 3xx, 429 and 5xx."""
    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=seconds)) as session,
            session.request(method, url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            if response.status >= 500 or response.status == 429 or 300 <= response.status < 400:
                raise ServiceUnavailable(f"the service answered {response.status}")
            return response.status, await _read(response)
    except (TimeoutError, ClientError, OSError, ValueError) as fault:
        raise ServiceUnavailable(f"the service cannot be reached: {type(fault).__name__}") from None


async def _read(response: ClientResponse) -> str:
    """Return the whole answer. Raises ServiceUnavailable if it is too large."""
    received = bytearray()
    async for chunk in response.content.iter_any():
        received += chunk
        if len(received) > _LARGEST:
            raise ServiceUnavailable("the answer of the service is too large")
    return received.decode(errors="replace")
