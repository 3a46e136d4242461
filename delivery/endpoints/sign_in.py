"""Signing users in to outside services: the address to go to, and the callback of the service."""

from datetime import UTC, datetime, timedelta

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.errors import NotFound, Refused
from core.sign_in import SignIn
from core.sign_in.sign_in import LIFETIME_MS
from delivery.endpoints.pages import HTML, read_page
from delivery.http.context import Context, Request, Response
from delivery.http.problems import problem_of_refusal
from delivery.http.route import NoParameters
from delivery.schemas import jobs as schemas
from delivery.services import Services

_HEADERS = {"Content-Type": HTML, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


async def begin(request: Request[schemas.SignInRequest, NoParameters]) -> Response:
    """Begin a sign-in."""
    url = await _sign_in(request.services).begin(request.tenant, request.body.service, str(request.body.user))
    return Response(schemas.SignInBegun(url, datetime.now(UTC) + timedelta(milliseconds=LIFETIME_MS)), 201)


def finish(context: Context) -> Handler:
    """The page that the service leads the user to. Jobs that waited for the sign-in go on. A browser gets a page for a
    refusal, too.
    """

    async def handle(request: web.Request) -> web.Response:
        try:
            signed_in = await _sign_in(context.services).finish(request.rel_url.raw_query_string)
        except Refused as refusal:
            if "text/html" not in request.headers.get(hdrs.ACCEPT, ""):
                raise
            status = problem_of_refusal(refusal).status
            return web.Response(text=read_page("not_signed_in.html"), status=status, headers=_HEADERS)
        await context.services.jobs.resume_after_sign_in(signed_in.tenant, signed_in.user)
        return web.Response(text=read_page("signed_in.html"), headers=_HEADERS)

    return handle


def _sign_in(services: Services) -> SignIn:
    """Raises NotFound SIGN_IN_NOT_SET_UP."""
    if services.sign_in is None:
        raise NotFound("SIGN_IN_NOT_SET_UP", "There is no service to sign in to: ADA_SIGN_IN is not set.")
    return services.sign_in
