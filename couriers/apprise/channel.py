"""The record of the channel: Apprise."""

import re

from core.model.contacts.addresses import AddressForm
from couriers.channel import Channel

_ROOM = re.compile(r"[\w.-]{1,64}")

CHANNEL = Channel(
    name="apprise",
    courier="couriers.apprise.courier",
    place=7,
    titles={"en": "Apprise"},
    shows=frozenset(),
    account="ADA_APPRISE_ROOMS",
    no_account=frozenset({"ADA_APPRISE_TIMEOUT"}),
    library="apprise",
    address=AddressForm(
        _ROOM.fullmatch,
        "the name of a room in ADA_APPRISE_ROOMS, such as staff. Its URL stands only there, because it is a secret",
        str.lower,
        is_group=lambda address: True,
    ),
)
