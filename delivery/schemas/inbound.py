"""Requests of providers and gateways to the API: messages of people, updates and delivery reports."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from delivery.schemas.requests import INT64


class InboundVkEvent(Struct, frozen=True):
    """An event of VK's callback API. VK sends further fields, which are those of the event's type."""

    type: Annotated[str, Meta(max_length=256)]
    secret: Annotated[str, Meta(max_length=1024, description="ADA_INBOUND_VK_SECRET")] = ""


class InboundUpdate(Struct, frozen=True):
    """An update of a webhook. Its fields are those of the provider."""


class InboundSmsQuery(Struct, frozen=True):
    """An SMS that a gateway has received. Gateways add parameters of their own, so unknown ones are ignored."""

    secret: Annotated[str, Meta(min_length=1, max_length=1024, description="ADA_INBOUND_SMS_SECRET")]
    sender: Annotated[str, Meta(min_length=1, max_length=256, description="the number that wrote")] = field(name="from")
    text: Annotated[str, Meta(max_length=2**16)] = ""
    to: Annotated[str, Meta(max_length=256, description="the number that was written to")] = ""
    time: Annotated[str, Meta(max_length=64)] = ""
    id: Annotated[str, Meta(max_length=256, description="the gateway's id: a repeat has the same")] = ""
    smsc: Annotated[str, Meta(max_length=256)] = ""
    charset: Annotated[str, Meta(max_length=64, description="of the parameters")] = "UTF-8"


class DeliveryReportQuery(Struct, frozen=True):
    """The delivery report of a gateway. Gateways add parameters of their own, so unknown ones are ignored."""

    token: Annotated[str, Meta(min_length=1, max_length=1024)]
    status: Annotated[
        int,
        Meta(
            ge=0,
            le=INT64 - 1,
            description="bits: 1 delivered, 2 failed, 4 buffered, 8 accepted, 16 rejected",
            extra_json_schema={"not": {"multipleOf": 32}},
        ),
    ]
    id: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


class ProfileReportQuery(Struct, frozen=True):
    """The address of an SMS provider's reports. The other fields are those that its profile names."""

    token: Annotated[str, Meta(max_length=1024, description="of the message, if it names its own address")] = ""
    secret: Annotated[str, Meta(max_length=1024, description="ADA_INBOUND_SMS_SECRET, if it does not")] = ""


class DeliveryReportResponse(Struct):
    """Whether the delivery report changed anything; a repeat or a late report does not."""

    changed: bool
