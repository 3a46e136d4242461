"""Stores a request of a person (C-63)."""

from typing import Annotated

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.placeholders.values import is_list
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Anything, Text
from scenarios.stores.requests import NewRequest, Requests

DEFAULT_NAME = "request"
Shown = Annotated[str, types.TEXT, conversion.shown]


class RequestAttributes(Attributes, frozen=True):
    """Attributes without a help are fields of the event."""

    request_name: Annotated[Text, Seen("The kind of request.")] = DEFAULT_NAME
    request_info: Annotated[Shown, Seen("A note that is stored with it.", may_be_empty=True)] = ""
    event_text: Annotated[Shown, Seen("Its text, instead of that of the event.", may_be_empty=True)] = ""
    attachments: Annotated[Anything, Seen("Its attachments, instead of those of the event.", may_be_empty=True)] = ()
    user_id: Annotated[Text, Seen()] = ""
    username: Annotated[Text, Seen()] = ""
    first_name: Annotated[Text, Seen()] = ""
    last_name: Annotated[Text, Seen()] = ""
    chat_id: Annotated[Text, Seen()] = ""

    def request(self, channel: str) -> NewRequest:
        """Return the request of the event's person."""
        attachments = self.attachments or ()
        return NewRequest(
            name=self.request_name,
            channel=channel,
            user_id=self.user_id,
            username=self.username,
            first_name=self.first_name,
            last_name=self.last_name,
            chat_id=self.chat_id,
            text=self.event_text,
            attachments=tuple(attachments) if is_list(attachments) else (attachments,),
            info=self.request_info,
        )


async def execute(context: Context, written: RequestAttributes) -> Ending:
    """Store the request once, however often it is executed."""
    request = written.request(context.channel)
    number = await Requests(context.services.core.store, context.services.tenant).store(context.identity, request)
    return _stored(request, number)


def rehearse(step: RehearsedStep, written: RequestAttributes) -> Ending:
    return _stored(written.request(step.channel), NUMBER)


def _stored(request: NewRequest, number: int) -> Ending:
    return completed({"request_text": request.text, "request_id": number}, from_person=["request_text"])


ACTION = ActionType(
    name="request",
    help="Stores a request of the person: name, text, attachments. It is kept for 400 days.",
    attributes=RequestAttributes,
    returns={"request_text": "the stored text", "request_id": "the number of the request"},
    execute=execute,
    rehearse=rehearse,
)
