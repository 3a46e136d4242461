"""Templates: a person has its own, and uses those of its tenant; a key keeps those of the tenant."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from core.model.history_key import Id
from core.model.json_form import JsonObject
from core.orders.templates import MessageTemplate, MessageTemplates
from delivery.api.deliveries.content import ContentRequest
from delivery.api.deliveries.questions import ChannelNames, QuestionRequest
from delivery.api.deliveries.sending import Strategy, Text, Texts
from delivery.http.context import ApiRequest, Request, Response, no_content
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, People, PlainRequest, Repeats, Route, Routes


class TemplateMessage(RequestModel, frozen=True):
    """The part of a delivery that a template keeps."""

    text: Text | UnsetType = UNSET
    texts: Texts | UnsetType = UNSET
    answer: QuestionRequest | UnsetType = UNSET
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
    message: JsonObject
    shared: bool

    @classmethod
    def of(cls, one: MessageTemplate) -> "TemplateView":
        return cls(one.id, one.title, one.message, one.shared)


class TemplateList(Struct, frozen=True):
    """The caller's own templates, then those of the tenant."""

    templates: Sequence[TemplateView]


async def list_all(request: PlainRequest) -> Response:
    """Return all templates that the caller may use."""
    found = await _templates(request).list(request.tenant, _owner(request))
    return Response(TemplateList([TemplateView.of(one) for one in found]))


async def save(request: Request[TemplateRequest, NoParameters]) -> Response:
    """Keep a template."""
    template = MessageTemplate(title=request.body.title, message=to_builtins(request.body.message))
    saved = await _templates(request).save(request.tenant, _owner(request), template)
    return Response(TemplateView.of(saved), 201)


async def delete(request: PlainRequest) -> Response:
    """Delete a template of the caller."""
    await _templates(request).delete(request.tenant, _owner(request), request.part("id"))
    return no_content()


def _templates(request: ApiRequest) -> MessageTemplates:
    return MessageTemplates(request.services.core.store)


def _owner(request: ApiRequest) -> Id | None:
    person = request.identity.person
    return person.id if person else None


ROUTES: Routes = (
    Route("GET", "/v1/templates", "List the messages that are kept to be sent again: own ones, the tenant's", "send",
          list_all, 200, TemplateList, people=People.OWN),
    Route("POST", "/v1/templates", "Keep a message to send it again; with an API key for all of the tenant", "send",
          save, 201, TemplateView, body=TemplateRequest, repeats=Repeats.STORED, people=People.OWN),
    Route("DELETE", "/v1/templates/{id}", "Delete a template", "send", delete, 204, repeats=Repeats.STORED,
          people=People.OWN),
)  # fmt: skip
