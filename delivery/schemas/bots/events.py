"""The types of `POST /v1/updates`: one flat event for the scenarios of a bot."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from delivery.schemas.requests import Id, Label, RequestModel, ShortText

EventId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}$", description="a repeat has the same id")]
ChannelName = Annotated[str, Meta(pattern=r"^[a-z0-9-]{1,32}$", description="the channel in which answers are sent")]
Kind = Literal[
    "text", "callback", "new_member", "left_member", "changed_member", "join_request", "edited", "inline_query"
]  # fmt: skip
EventText = Annotated[str, Meta(max_length=2**16)]
LongId = Annotated[str, Meta(max_length=1024)]
People = Annotated[list[Id], Meta(max_length=100)]
Names = Annotated[list[Label], Meta(max_length=100)]
Flags = Annotated[list[bool], Meta(max_length=100)]
OptionalId = Id | UnsetType | None
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
    user_id: Id
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


class EventAccepted(Struct, frozen=True):
    """The event is in the queue, or was before. `user`: the person, as `person` of `GET /v1/runs` takes it."""

    id: str
    user: str
