"""Actions on deliveries that were ordered before: cancels scheduled ones, shows a person what becomes of its own until
it has ended (D-17, C-115).
"""

from typing import Annotated

from msgspec.structs import replace

from core.errors import NotFound
from core.model.content import Feature, ParseMode
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.people import User, id_text
from core.model.states import DeliveryState, Status
from core.model.text.text_entities import escaped
from core.orders import Caller
from core.updates.rights import origin_of
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, completed, failed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen
from scenarios.schema.attributes import Text, Verbatim
from scenarios.sending.following import StatusTask, follow, mark_of, status_message
from scenarios.sending.message import MessageAttributes, MessageId, message
from scenarios.sending.orders import is_limited, personal_tag, say
from scenarios.sending.person import language_of_person, refused, required_person
from scenarios.sending.status import StatusPress, answers_text, missed_text, status_press
from scenarios.words import in_language, sentence


class CancelAttributes(Attributes, frozen=True):
    tag: Annotated[Verbatim, Own("The `tag` of the `send` that scheduled them.")] = ""


async def execute_cancel(context: Context, written: CancelAttributes) -> Ending:
    context.require("send")
    if not written.tag:
        return failed("FIELD_EMPTY", sentence("no_tag_given"))
    tenant, tag = context.services.tenant, personal_tag(context.event, written.tag)
    return completed({"cancelled": await context.services.core.deliveries.cancel_by(tenant, "tag", tag)})


CANCEL = ActionType(
    name="cancel",
    help="Cancels the messages that scenarios of this person have scheduled under a tag, as far as they are not sent.",
    placeholder=True,
    one_of=("tag",),
    attributes=CancelAttributes,
    returns={"cancelled": "how many deliveries were cancelled"},
    execute=execute_cancel,
    samples={"cancelled": 1},
)


class FollowDeliveryAttributes(Attributes, frozen=True):
    delivery_id: Annotated[Text, Seen("The delivery; that of the `order` before without it.")] = ""
    titles: Annotated[
        Text, Seen("The addressees, for the result; as `choose_addressees` returns them without it.", may_be_empty=True)
    ] = ""
    exact_message_id: Annotated[
        MessageId,
        Seen(
            "The message that shows the state, such as `{pressed_message_id}`; without it a new one.", may_be_empty=True
        ),
    ] = None
    press: Annotated[
        Text,
        Own("`{callback_data}` of a button of such a message: does what it says."),
    ] = ""


async def execute_follow_delivery(context: Context, written: FollowDeliveryAttributes) -> Ending:
    """Show the status once, however often it is executed. Raises Refused."""
    user = await required_person(context)
    if written.press:
        return await _pressed(context, user, written.press)
    key, services = HistoryKey.parse(written.delivery_id), context.services
    history = await services.core.deliveries.read(key, services.tenant, limit=1)
    if key.sender != id_text(user.id):
        raise NotFound("HISTORY_NOT_FOUND", sentence("status_history_not_found"))
    if await can_edit(context):
        shown = status_message(history, language_of_person(context, user), services.timezone)
        sent = await say(context, replace(shown, exact_message_id=written.exact_message_id), "")
        await _follow(context, user, key, str(sent), mark_of(shown))
    else:
        await _follow(context, user, key, "", "", written.titles)
    return completed(_told(history, ""))


async def can_edit(context: Context) -> bool:
    """Return whether a message can be changed in the channel of the event."""
    views = await context.services.core.channels.views()
    display = next((one.display for one in views if one.name == context.channel), None)
    return display is not None and Feature.EDIT in display.shows


async def _follow(context: Context, user: User, key: HistoryKey, message: str, shown: str, title: str = "") -> None:
    followed = StatusTask(
        str(key),
        context.channel,
        context.chat,
        message,
        language_of_person(context, user),
        shown,
        title=title,
        name=context.identity,
        origin=origin_of(context.event),
        is_limited=is_limited(context),
    )
    await follow(context.services.core.client, context.services.tenant, followed)


async def _pressed(context: Context, user: User, data: str) -> Ending:
    """Do what a button says. Raises NotFound HISTORY_NOT_FOUND for the delivery of somebody else."""
    press = status_press(data)
    if press is None:
        raise NotFound("HISTORY_NOT_FOUND", sentence("status_history_not_found"))
    verbs = {
        "cancel": _cancel,
        "retry": _retry,
        "missed": _list_people,
        "answers": _list_people,
        "remind": _remind,
        "close": _close,
    }
    return await verbs[press.verb](context, user, press)


async def _cancel(context: Context, user: User, press: StatusPress) -> Ending:
    services, key, language = context.services, press.key(user.id), language_of_person(context, user)
    deliveries = services.core.deliveries
    before, notice = await deliveries.read(key, services.tenant, limit=1), ""
    if before.state is DeliveryState.SCHEDULED:
        await deliveries.cancel(key, services.tenant)
        before = await deliveries.read(key, services.tenant, limit=1)
    else:
        is_cancelled = before.state is DeliveryState.CANCELLED
        notice = in_language(sentence("status_cancelled" if is_cancelled else "status_too_late"), language)
    await say(context, status_message(before, language, services.timezone), "", context.event)
    return completed(_told(before, notice))


async def _retry(context: Context, user: User, press: StatusPress) -> Ending:
    """Retry the failed recipients; a second press finds none."""
    services, key, language = context.services, press.key(user.id), language_of_person(context, user)
    history = await services.core.deliveries.read(key, services.tenant, limit=1)
    count = await services.core.sending.retry(key, Caller(services.tenant), [Status.FAILED])
    if count:
        await _follow(context, user, key, str(context.event.get("message_id") or ""), "")
        return completed(_told(history, in_language(sentence("retry_begun", count=count), language)))
    return completed(_told(history, in_language(sentence("retry_nothing"), language)))


async def _remind(context: Context, user: User, press: StatusPress) -> Ending:
    """Remind those who have not answered. Raises Conflict QUIET_HOURS, NotFound QUESTION_NOT_FOUND."""
    services, key, language = context.services, press.key(user.id), language_of_person(context, user)
    services.core.sending.check_quiet_hours(Caller(services.tenant, person=user))
    result, people = await services.core.questions.remind(key, services.tenant, by=id_text(user.id))
    if result == "reminded" and not people:
        result = await services.core.questions.why_nobody(key, services.tenant)
    code = sentence("reminded", count=people) if people else sentence(f"reminded_{result}")
    history = await services.core.deliveries.read(key, services.tenant, limit=1)
    return completed(_told(history, in_language(code, language)))


async def _close(context: Context, user: User, press: StatusPress) -> Ending:
    """Close the question; a second press changes nothing. Raises NotFound QUESTION_NOT_FOUND."""
    services, key, language = context.services, press.key(user.id), language_of_person(context, user)
    await services.core.questions.close(key, services.tenant)
    history = await services.core.deliveries.read(key, services.tenant, limit=1)
    await say(context, status_message(history, language, services.timezone), "", context.event)
    return completed(_told(history, in_language(sentence("question_closed"), language)))


async def _list_people(context: Context, user: User, press: StatusPress) -> Ending:
    services, key, language = context.services, press.key(user.id), language_of_person(context, user)
    tenant, deliveries = services.tenant, services.core.deliveries
    history = await deliveries.read(key, tenant, limit=1)
    if press.verb == "missed":
        text = await missed_text(deliveries, key, tenant, language)
    else:
        text = await answers_text(deliveries, services.core.directory.users, key, tenant, language)
    await say(context, MessageAttributes(escaped(text, ParseMode.HTML)), "")
    return completed(_told(history, ""))


def _told(history: History, notice: str) -> dict[str, Data]:
    return {"delivery_id": history.key.id, "verdict": str(history.verdict), "notice": notice}


def rehearse_follow_delivery(step: RehearsedStep, written: FollowDeliveryAttributes) -> Ending:
    """Everybody is reached at once."""
    language = step.step.language(step.event)
    lines = (sentence("status_everybody_reached"), sentence("status_counts", people=1, reached=1))
    said = message(MessageAttributes("\n".join(in_language(one, language) for one in lines)))
    step.sent = None if written.press else said
    return completed({"delivery_id": written.delivery_id, "verdict": "all_reached", "notice": ""})


FOLLOW_DELIVERY = ActionType(
    name="follow_delivery",
    help="Shows the person what becomes of its delivery, in one message that changes until that has ended; by SMS once"
    " it has ended. The answers to a question are counted there for a day. Buttons cancel a delivery that is scheduled,"
    " send again to those for whom it failed, list who was not reached and who has answered what, remind, and close the"
    " question: give them a trigger, `callback: {contains: {delivery: …}}`, whose scenario has this action with"
    " `press`. The action does not wait for the end.",
    attributes=FollowDeliveryAttributes,
    placeholder=True,
    returns={
        "delivery_id": "the id of the delivery",
        "verdict": "what has become of it so far",
        "notice": "of a press: what to show with `answer_press`, empty if a message says it",
        "code": "why it failed: `HISTORY_NOT_FOUND`, `QUIET_HOURS`, `PERSON_UNKNOWN`, …",
        "wait": "0",
    },
    execute=execute_follow_delivery,
    rehearse=rehearse_follow_delivery,
    failure=refused,
)
