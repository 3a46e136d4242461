"""The record of the channel."""

from couriers.channel import Channel, ChannelWebhook, Receiving, ReportCallback

CHANNEL = Channel(
    name="pigeon",
    courier="pigeon.courier",
    account="ADA_PIGEON_TOKEN",
    simulator="pigeon.simulator",
    in_sms=True,
    column_names=("голубь",),
    samples={2: "loft-8"},
    receiving=Receiving(
        process="pigeon",
        events="pigeon.events",
        receiver="pigeon.receive",
        webhook=ChannelWebhook("/v1/updates/pigeon", "X-Pigeon-Ring", "ADA_PIGEON_RING", "A pigeon that has arrived"),
        reads_section=True,
    ),
    reports=(ReportCallback("A report of the loft", "pigeon.reports"),),
)
