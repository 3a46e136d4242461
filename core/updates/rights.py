"""The rights with which an event is processed: those of its person, but never more than its sender has (I21).

    a provider's update   the provider vouches for the person: the event has the person's rights
    POST /v1/updates      a client only claims who the person is: the event carries the scopes of the client's API key,
                          and what needs a right needs the person's and the scope

Guarantee: the fields of the rights are written only here. Readers of providers and the API's schema do not know them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from core.admission import api_keys

API = "api"
"""The `origin` of an event that came with an API key, and of the deliveries that it causes."""

_ORIGIN, _SCOPES = "origin", "key_scopes"


def handed_in(event: Mapping[str, Any], key_scopes: Iterable[str]) -> dict[str, Any]:
    """Return the event with its origin: an API key with these scopes."""
    return {**event, _ORIGIN: API, _SCOPES: sorted(key_scopes)}


def origin_of(event: Mapping[str, Any]) -> str:
    """Return where an event comes from: API, or its channel."""
    return str(event.get(_ORIGIN) or event["channel"])


def permits(event: Mapping[str, Any], scope: str) -> bool:
    """Return whether what needs `scope` over HTTP may be done for this event. Always, for an event of a provider."""
    return event.get(_ORIGIN) != API or api_keys.permits(event.get(_SCOPES) or (), scope)
