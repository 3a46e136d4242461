"""The record of the channel: VK."""

from core.model.contacts.addresses import PEER
from core.model.content import EVERY_FEATURE, Feature, KeyboardLimits
from couriers.channel import Callback, Channel, Receiving

LONGEST_LABEL = 40
LONGEST_DATA = 245
"""Characters of a button's data as JSON: a payload has 255, and the name around it takes the others."""

KEYBOARD = KeyboardLimits(
    inline_rows=6,
    inline_buttons=10,
    reply_rows=10,
    reply_buttons=40,
    width=5,
    label=LONGEST_LABEL,
    data=LONGEST_DATA,
)
"""Rows of more than five are continued in the next row. Buttons that do not fit become numbered choices in the text."""

CHANNEL = Channel(
    name="vk",
    courier="couriers.vk.courier",
    outcomes="couriers.vk.outcomes",
    keyboard=KEYBOARD,
    place=2,
    titles={"en": "VK", "ru": "ВКонтакте"},
    shows=EVERY_FEATURE - {Feature.PARSE_MODE, Feature.REQUEST_CONTACT} | {Feature.ANSWER},
    account="ADA_VK_TOKEN",
    no_account=frozenset({"ADA_VK_LONG_POLL", "ADA_VK_TIMEOUT", "ADA_VK_MOST_FILE_MB"}),
    is_per_bot=True,
    is_simulated=True,
    address=PEER,
    readers={"ADA_INBOUND_VK_SECRET": frozenset({"serve"})},
    bot_place=3,
    is_known_at_start=True,
    column_names=("vk", "вк", "вконтакте"),
    samples={1: "200001", 3: "200003"},
    receiving=Receiving(
        process="vk",
        events="couriers.vk.events",
        source="community",  # the ids of events are unique in it, however they arrive
        receiver="couriers.vk.receive",
        callback=Callback(
            path="/v1/inbound/vk",
            secret="ADA_INBOUND_VK_SECRET",
            title="An event of VK's callback API",
            module="couriers.vk.events",
            confirmation="ADA_INBOUND_VK_CONFIRMATION",
        ),
        needs=frozenset({"ADA_INBOUND_VK_SECRET", "ADA_VK_LONG_POLL"}),
        reads_section=True,
        makes_calls=True,
        longest_answer=90,  # dev.vk.com, show_snackbar
    ),
)
