"""Updates of channels of your own: each becomes an event for the scenarios of the tenant's bot.

A client only claims who the person is, so the event carries the scopes of the client's key: `core.updates.rights`.
"""

import secrets
from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from core.errors import NotFound
from core.model.field_types import IdField, Label, ShortText, whole
from core.model.json_form import Json
from core.updates import rights
from core.updates.events import Events, person_of
from delivery.http.context import ApiRequest, Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, Repeats, Route, Routes

EventId = Annotated[str, Meta(pattern=whole(r"[A-Za-z0-9._:-]{1,128}"), description="a repeat has the same id")]
ChannelName = Annotated[
    str, Meta(pattern=whole(r"[a-z0-9-]{1,32}"), description="the channel in which answers are sent")
]
Kind = Literal[
    "text", "callback", "new_member", "left_member", "changed_member", "join_request", "edited", "inline_query",
    "answer", "reply",
]  # fmt: skip
EventText = Annotated[str, Meta(max_length=2**16)]
LongId = Annotated[str, Meta(max_length=1024)]
People = Annotated[list[IdField], Meta(max_length=100)]
Names = Annotated[list[Label], Meta(max_length=100)]
Flags = Annotated[list[bool], Meta(max_length=100)]
OptionalId = IdField | UnsetType | None
OptionalLabel = Label | UnsetType | None
OptionalFlag = bool | UnsetType | None


class EventAttachment(RequestModel, frozen=True):
    """A file of the message, or a contact: then `phone`, and `is_own` if it is that of the sender."""

    type: ShortText
    file_id: LongId | UnsetType | None = UNSET
    mime_type: OptionalLabel = UNSET
    file_name: OptionalLabel = UNSET
    phone: OptionalLabel = UNSET
    is_own: OptionalFlag = UNSET


Attachments = Annotated[list[EventAttachment], Meta(max_length=100)]


class EventRequest(RequestModel, frozen=True):
    """An event in a chat. `kind`: by default what the fields show; `chat_id`: by default the person."""

    channel: ChannelName
    user_id: IdField
    id: EventId | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    username: OptionalLabel = UNSET
    first_name: OptionalLabel = UNSET
    last_name: OptionalLabel = UNSET
    language_code: OptionalLabel = UNSET
    is_bot: OptionalFlag = UNSET
    is_reply: OptionalFlag = UNSET
    is_forward: OptionalFlag = UNSET
    entity_id: OptionalId = UNSET
    entity_type: OptionalLabel = UNSET
    chat_id: OptionalId = UNSET
    dialog_id: OptionalId = UNSET
    chat_type: OptionalLabel = UNSET
    chat_title: OptionalLabel = UNSET
    chat_username: OptionalLabel = UNSET
    topic_id: OptionalId = UNSET
    message_id: OptionalId = UNSET
    event_text: EventText | UnsetType | None = UNSET
    event_date: OptionalLabel = UNSET
    edit_date: OptionalLabel = UNSET
    media_group_id: OptionalLabel = UNSET
    attachments: Attachments | UnsetType | None = UNSET
    callback_id: OptionalLabel = UNSET
    callback_data: LongId | UnsetType | None = UNSET
    reply_message_id: OptionalId = UNSET
    reply_message_text: EventText | UnsetType | None = UNSET
    reply_user_id: OptionalId = UNSET
    reply_is_bot: OptionalFlag = UNSET
    reply_username: OptionalLabel = UNSET
    reply_first_name: OptionalLabel = UNSET
    reply_last_name: OptionalLabel = UNSET
    reply_date: OptionalLabel = UNSET
    reply_attachments: Attachments | UnsetType | None = UNSET
    reply_entity_id: OptionalId = UNSET
    reply_entity_type: OptionalLabel = UNSET
    forward_entity_id: OptionalId = UNSET
    forward_entity_type: OptionalLabel = UNSET
    forward_date: OptionalLabel = UNSET
    forward_message_id: OptionalId = UNSET
    forward_from_user_username: OptionalLabel = UNSET
    forward_from_user_first_name: OptionalLabel = UNSET
    forward_from_user_last_name: OptionalLabel = UNSET
    forward_from_chat_title: OptionalLabel = UNSET
    forward_from_chat_type: OptionalLabel = UNSET
    forward_from_chat_username: OptionalLabel = UNSET
    joined_user_id: OptionalId = UNSET
    joined_username: OptionalLabel = UNSET
    joined_first_name: OptionalLabel = UNSET
    joined_last_name: OptionalLabel = UNSET
    joined_is_bot: OptionalFlag = UNSET
    joined_user_ids: People | UnsetType | None = UNSET
    joined_usernames: Names | UnsetType | None = UNSET
    joined_first_names: Names | UnsetType | None = UNSET
    joined_last_names: Names | UnsetType | None = UNSET
    joined_is_bots: Flags | UnsetType | None = UNSET
    member_status: OptionalLabel = UNSET
    member_status_before: OptionalLabel = UNSET
    member_rights: Names | UnsetType | None = UNSET
    member_title: OptionalLabel = UNSET
    member_until: OptionalLabel = UNSET
    invite_link: LongId | UnsetType | None = UNSET
    invite_link_creates_join_request: OptionalFlag = UNSET
    invite_link_creator_id: OptionalId = UNSET
    invite_link_creator_username: OptionalLabel = UNSET
    invite_link_creator_first_name: OptionalLabel = UNSET
    initiator_user_id: OptionalId = UNSET
    initiator_username: OptionalLabel = UNSET
    initiator_first_name: OptionalLabel = UNSET
    initiator_last_name: OptionalLabel = UNSET
    initiator_language_code: OptionalLabel = UNSET
    bio: EventText | UnsetType | None = UNSET
    inline_query_id: OptionalLabel = UNSET
    inline_query_offset: OptionalLabel = UNSET
    answer_value: EventText | UnsetType | None = UNSET
    answer_state: OptionalLabel = UNSET
    answer_by: OptionalLabel = UNSET
    delivery_id: LongId | UnsetType | None = UNSET
    delivery_text: EventText | UnsetType | None = UNSET
    thread_id: OptionalLabel = UNSET
    thread_inbox: OptionalLabel = UNSET


class EventAccepted(Struct, frozen=True):
    """The event is in the queue, or was before. `user`: the person, as `person` of `GET /v1/runs` takes it."""

    id: str
    user: str


SOURCE = "@api"
"""Ids of events are unique in it. No tenant has this name, and the source of Telegram's updates is the tenant's."""


async def receive(request: Request[EventRequest, NoParameters]) -> Response:
    """Put an event; 200 for one whose id was put before. Raises NotFound BOT_NOT_SET_UP, Invalid EVENT_TOO_LARGE."""
    event = rights.handed_in(event_of(request.body), request.key.scopes)
    is_new = await _events(request).put(SOURCE, event)
    return Response(EventAccepted(event["id"], person_of(event)), 202 if is_new else 200)


def event_of(body: EventRequest) -> dict[str, Json]:
    """Return the event, with what a client may leave out. Fields that are null are left out."""
    given = {name: value for name, value in to_builtins(body).items() if value is not None}
    defaults = {"id": secrets.token_hex(12), "chat_id": given["user_id"], "event_date": datetime.now(UTC).isoformat()}
    return {**defaults, **given}


def _events(request: ApiRequest) -> Events:
    events = request.services.events(request.tenant)
    if events is None:
        raise NotFound("BOT_NOT_SET_UP", "This tenant has no bot with scenarios: see ADA_SCENARIOS and ADA_BOT_TENANT.")
    return events


ROUTES: Routes = (
    Route("POST", "/v1/updates", "An event of a chat, for the scenarios of the tenant's bot; 200 for a repeat",
          "updates", receive, 202, EventAccepted, body=EventRequest, repeats=Repeats.STORED, repeat_status=200),
)  # fmt: skip
