"""Errors of the sandbox's HTTP API, as RFC 9457 problems with a stable `code`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass

from aiohttp import web

_CODES = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "TOO_LARGE"}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of one input field."""

    path: str
    code: str
    message: str


class Problem(Exception):
    """An error response."""

    def __init__(self, status: int, code: str, detail: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.status, self.code, self.errors = status, code, errors

    def response(self) -> web.Response:
        title = self.code.replace("_", " ").capitalize()
        body = {"type": "about:blank", "title": title, "status": self.status, "detail": str(self), "code": self.code}
        extra = {"errors": [asdict(error) for error in self.errors]} if self.errors else {}
        return web.json_response({**body, **extra}, status=self.status, content_type="application/problem+json")


def validation_failed(errors: Sequence[FieldError]) -> Problem:
    return Problem(422, "VALIDATION_FAILED", "; ".join(f"{error.path}: {error.message}" for error in errors), errors)


@web.middleware
async def problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Convert problems, and the router's errors, to responses of one form."""
    try:
        return await handler(request)
    except Problem as problem:
        return problem.response()
    except web.HTTPException as error:
        return Problem(error.status, _CODES.get(error.status, "REFUSED"), error.reason).response()
