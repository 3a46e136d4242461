"""Reads the parameters of a call from query, form, multipart form or JSON body."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from sandbox.bot_api.state.errors import bad_request


@dataclass(frozen=True, slots=True)
class Upload:
    """A file sent by a client."""

    name: str
    content_type: str
    content: bytes


class Parameters:
    """The parameters of one call, as texts. A parameter that is absent and an empty one are the same."""

    def __init__(self, values: Mapping[str, str], uploads: Mapping[str, Upload] | None = None) -> None:
        self._values = values
        self._uploads = uploads or {}

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def integer(self, name: str, default: int = 0) -> int:
        """Return a parameter as an integer. Raises ApiError if it is no integer."""
        text = self.text(name)
        try:
            return int(text[:20]) if text else default
        except ValueError:
            raise bad_request(f"invalid {name} specified") from None

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "1", "yes")

    def json(self, name: str) -> Any:
        """Return the JSON value, None if it is absent. Raises ApiError."""
        text = self.text(name)
        if not text:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise bad_request(f"can't parse {name} JSON object") from None

    def texts(self, name: str) -> list[str] | None:
        """Return a JSON list of texts, None if it is absent. Raises ApiError."""
        value = self.json(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            raise bad_request(f"can't parse {name} JSON object")
        return value

    def upload(self, name: str) -> Upload | None:
        """Return the uploaded file: the field itself, or the field that `attach://<field>` names."""
        return self._uploads.get(self.text(name).removeprefix("attach://")) or self._uploads.get(name)


async def read_parameters(request: web.Request) -> Parameters:
    """Read all parameters. Raises ApiError for a body that is not what its content type says."""
    if request.content_type == "application/json":
        return Parameters({**request.query, **await _json_values(request)})
    try:
        form = await request.post()
    except (ValueError, LookupError):
        raise bad_request("can't parse the form") from None
    texts = {name: value for name, value in form.items() if isinstance(value, str)}
    files = {name: value for name, value in form.items() if isinstance(value, web.FileField)}
    uploads = {name: Upload(file.filename, file.content_type, file.file.read()) for name, file in files.items()}
    return Parameters({**request.query, **texts}, uploads)


async def _json_values(request: web.Request) -> dict[str, str]:
    try:
        values = await request.json()
    except (ValueError, LookupError, RecursionError):
        raise bad_request("can't parse JSON object") from None
    if not isinstance(values, dict):
        raise bad_request("can't parse JSON object")
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value is not None
    }
