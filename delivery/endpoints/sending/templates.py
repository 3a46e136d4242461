"""Templates: a person has its own, and uses those of its tenant; a key keeps those of the tenant."""

from typing import Any

from msgspec import to_builtins

from core.model.history_key import Id
from core.orders.templates import Template, Templates
from delivery.http.context import Request, Response, no_content
from delivery.http.route import NoParameters
from delivery.schemas import templates as schemas


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return all templates that the caller may use."""
    found = await _templates(request).list(request.tenant, _owner(request))
    return Response(schemas.TemplateList([schemas.TemplateView.of(one) for one in found]))


async def save(request: Request[schemas.TemplateRequest, NoParameters]) -> Response:
    """Keep a template."""
    template = Template(title=request.body.title, message=to_builtins(request.body.message))
    saved = await _templates(request).save(request.tenant, _owner(request), template)
    return Response(schemas.TemplateView.of(saved), 201)


async def delete(request: Request[None, NoParameters]) -> Response:
    """Delete a template of the caller."""
    await _templates(request).delete(request.tenant, _owner(request), request.http.match_info["id"])
    return no_content()


def _templates(request: Request[Any, Any]) -> Templates:
    return Templates(request.services.core.store)


def _owner(request: Request[Any, Any]) -> Id | None:
    person = request.identity.person
    return person.id if person else None
