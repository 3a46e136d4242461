"""Large JSON is compressed; streams and small responses are not."""

import gzip
import json

from aiohttp import ClientTimeout

from tests.delivery.conftest import Api

AUTHORIZED = {"Authorization": "Bearer ada_admin"}


async def raw(api: Api, path: str, accepted: str) -> tuple[bytes, str | None]:
    """Returns the body as it was sent, and its encoding."""
    headers = {**AUTHORIZED, "Accept-Encoding": accepted}
    async with api.session.get(api.url + path, headers=headers, auto_decompress=False) as response:
        return await response.read(), response.headers.get("Content-Encoding")


async def test_json_over_a_kilobyte_is_compressed_for_clients_that_accept_it(api: Api) -> None:
    for number in range(30):
        assert (await api.call("POST", "/v1/users", {"id": number, "name": f"Person {number}"})).status == 201
    plain, none = await raw(api, "/v1/users?limit=30", "identity")
    compressed, encoding = await raw(api, "/v1/users?limit=30", "gzip")
    assert (none, encoding) == (None, "gzip")
    assert len(compressed) < len(plain) / 3
    assert gzip.decompress(compressed) == plain
    assert len(json.loads(plain)["users"]) == 30
    small, encoding = await raw(api, "/v1/users?limit=1", "gzip")
    assert encoding is None
    assert json.loads(small)["users"]


async def test_a_stream_of_events_is_never_compressed(api: Api) -> None:
    headers, timeout = {**AUTHORIZED, "Accept-Encoding": "gzip"}, ClientTimeout(total=None)
    async with api.session.get(f"{api.url}/v1/live?topics=queue", headers=headers, timeout=timeout) as response:
        assert "Content-Encoding" not in response.headers
        assert (await response.content.readline()).startswith(b":")
