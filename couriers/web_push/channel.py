"""The record of the channel: Web push."""

import re
from importlib.util import find_spec

from core.model.contacts.addresses import AddressForm
from core.model.content import Feature
from couriers.channel import Channel

_DIGEST = re.compile(r"[A-Za-z0-9_-]{22}")

CHANNEL = Channel(
    name="web-push",
    courier="couriers.web_push.courier",
    place=8,
    titles={"en": "Notifications", "ru": "Уведомления"},
    shows=frozenset({Feature.INLINE}),
    account="ADA_WEB_PUSH_CONTACT",
    no_account=frozenset(
        {
            *("ADA_WEB_PUSH_KEY", "ADA_WEB_PUSH_TITLE", "ADA_WEB_PUSH_TTL", "ADA_WEB_PUSH_TIMEOUT"),
            "ADA_WEB_PUSH_SERVICE",
        }
    ),
    library="pywebpush",
    simulator="sandbox.web_push" if find_spec("pywebpush") else "",  # it is an extra
    address=AddressForm(
        _DIGEST.fullmatch,
        "the digest of a subscription, which a person makes on the page behind a link in its messages",
        is_group=lambda address: False,
    ),
)
