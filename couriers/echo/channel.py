"""The record of the channel: The example of docs/add-a-courier.md."""

from couriers.channel import Channel

CHANNEL = Channel(name="echo", courier="couriers.echo.courier")
