"""Templates: messages that are kept to be sent again."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from core.orders.templates import Template
from delivery.schemas.fields.content import ContentRequest
from delivery.schemas.requests import ChannelNames, RequestModel, Strategy, Text


class TemplateMessage(RequestModel, frozen=True):
    """The part of a delivery that a template keeps."""

    text: Text | UnsetType = UNSET
    content: ContentRequest | UnsetType = UNSET
    channels: ChannelNames | UnsetType = UNSET
    strategy: Strategy | UnsetType = UNSET


class TemplateRequest(RequestModel, frozen=True):
    """A new template."""

    title: Annotated[str, Meta(min_length=1, max_length=128)]
    message: TemplateMessage


class TemplateView(Struct, frozen=True):
    """A template. `message`: fields of `POST /v1/deliveries`. `shared`: it is of the tenant, not of the caller."""

    id: str
    title: str
    message: Mapping[str, Any]
    shared: bool

    @classmethod
    def of(cls, one: Template) -> "TemplateView":
        return cls(one.id, one.title, one.message, one.shared)


class TemplateList(Struct, frozen=True):
    """The caller's own templates, then those of the tenant."""

    templates: Sequence[TemplateView]
