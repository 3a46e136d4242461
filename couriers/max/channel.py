"""The record of the channel: MAX."""

from core.model.contacts.addresses import PERSON_OR_GROUP
from core.model.content import EVERY_FEATURE, Feature
from couriers.channel import Channel, ChannelWebhook, Receiving

CHANNEL = Channel(
    name="max",
    courier="couriers.max.courier",
    outcomes="couriers.max.outcomes",
    place=3,
    titles={"en": "MAX"},
    shows=EVERY_FEATURE | {Feature.ANSWER},
    account="ADA_MAX_TOKEN",
    no_account=frozenset({"ADA_MAX_CA", "ADA_MAX_TIMEOUT", "ADA_MAX_MOST_FILE_MB"}),
    files=frozenset({"ADA_MAX_CA"}),
    of_installation=frozenset({"ADA_MAX_WEBHOOK_URL", "ADA_MAX_WEBHOOK_SECRET"}),
    is_per_bot=True,
    is_simulated=True,
    address=PERSON_OR_GROUP,
    readers={"ADA_MAX_WEBHOOK_SECRET": frozenset({"serve", "bot max"})},
    bot_place=2,
    column_names=("max", "макс"),
    samples={1: "300001", 2: "300002"},
    receiving=Receiving(  # without a webhook it polls
        process="max",
        events="couriers.max.events",
        receiver="couriers.max.receive",
        webhook=ChannelWebhook(
            path="/v1/updates/max",
            header="X-Max-Bot-Api-Secret",
            secret="ADA_MAX_WEBHOOK_SECRET",
            title="An update of MAX's webhook",
            url="ADA_MAX_WEBHOOK_URL",
        ),
        reads_section=True,
        makes_calls=True,  # a press is answered there only with a new content of its message
    ),
)
