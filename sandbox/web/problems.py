"""Errors of the sandbox's own calls, as RFC 9457 problems with a stable `code`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass

from aiohttp import web

_CODES = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "TOO_LARGE"}


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong with the input."""

    path: str
    code: str
    message: str


class Problem(Exception):
    """An answer that says what is wrong."""

    def __init__(self, status: int, code: str, detail: str, flaws: Sequence[Flaw] = ()) -> None:
        super().__init__(detail)
        self.status, self.code, self.flaws = status, code, flaws

    def response(self) -> web.Response:
        title = self.code.replace("_", " ").capitalize()
        body = {"type": "about:blank", "title": title, "status": self.status, "detail": str(self), "code": self.code}
        more = {"errors": [asdict(flaw) for flaw in self.flaws]} if self.flaws else {}
        return web.json_response({**body, **more}, status=self.status, content_type="application/problem+json")


def invalid(flaws: Sequence[Flaw]) -> Problem:
    return Problem(422, "VALIDATION_FAILED", "; ".join(f"{flaw.path}: {flaw.message}" for flaw in flaws), flaws)


@web.middleware
async def problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer problems, the router's included, in one form."""
    try:
        return await handler(request)
    except Problem as problem:
        return problem.response()
    except web.HTTPException as wrong:
        return Problem(wrong.status, _CODES.get(wrong.status, "REFUSED"), wrong.reason).response()
