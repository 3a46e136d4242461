"""Receives mails that answer messages of Ada: a mail server or a provider posts each as it was transferred.

There is no API key: the secret is in the address, and compared in constant time. A repeat of the same mail counts once.
"""

import io
from typing import Annotated

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Meta, Struct

from core.threads.mailed_replies import MailedReplies, MailResult
from couriers.channel import mailed_channel
from delivery.http.context import ApiContext, Response
from delivery.http.input.decoding import QueryReader, check_content_type
from delivery.http.input.receiving import receive_file
from delivery.http.options import MiB, check_secret
from delivery.http.route import OpenRoute, Routes

MAIL_TYPE = "message/rfc822"
MAIL_LIMIT = 20 * MiB


class InboundMailQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The address to which mails are posted."""

    secret: Annotated[str, Meta(min_length=1, max_length=1024, description="ADA_INBOUND_MAIL_SECRET")]


class InboundMailResponse(Struct):
    """The result of a mail. `automatic`: a machine has written it, so it is not passed on; `empty`: it has no new
    words and no files.
    """

    result: MailResult


_query = QueryReader(InboundMailQuery)


def receive_mail(context: ApiContext) -> Handler:
    options, services = context.options, context.services
    mailbox, core, channel = options.inbound.mailbox, services.core, mailed_channel()
    replies = MailedReplies(
        *(core.store, core.client, core.directory, services.uploads, channel, mailbox), context.metrics.count_mail
    )

    async def handle(request: web.Request) -> web.Response:
        given = _query.read(list(request.rel_url.query.items()))
        check_secret(given.secret, options.inbound.secrets.get(channel, "") if mailbox else "")
        check_content_type(request, frozenset({MAIL_TYPE}))
        raw = io.BytesIO()
        await receive_file(request, MAIL_LIMIT, options.body_timeout, raw)
        result = await replies.take(raw.getvalue())
        return Response(InboundMailResponse(result)).encode()

    return handle


ROUTES: Routes = (
    OpenRoute("POST", "/v1/inbound/mail", "A mail that answers a message; its secret is in the address", receive_mail,
              InboundMailResponse, InboundMailQuery, upload=MAIL_TYPE),
)  # fmt: skip
