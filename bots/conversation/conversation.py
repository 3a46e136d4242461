"""The whole conversation: which part of it answers an event. Its `converse` is for `bots.dialogs.Answering`."""

from bots.button_data import ButtonData
from bots.catalogue import text
from bots.conversation.commands import command_of, help_of, is_teacher
from bots.conversation.keyboards import Press
from bots.conversation.linking import LinkingConversation, locale_of
from bots.conversation.ordering import Ordering
from bots.conversation.selection import SelectionConversation
from bots.conversation.state import State, Turn, say
from bots.conversation.status import StatusConversation, StatusView
from bots.dialog_event import DialogEvent, as_event
from bots.replies import Reply
from bots.services import BotServices
from core.model.people import User
from core.orders.following import StatusTasks
from core.sessions import SignInLinks
from core.sessions.codes import LINK_LIFETIME
from scenarios.sending.phrases import duration


class Conversation:
    """One per process and tenant."""

    def __init__(
        self, services: BotServices, button_data: ButtonData, view: StatusView, status_tasks: StatusTasks
    ) -> None:
        self._sign_in_links = SignInLinks(services.core.store)
        self._public_url = services.public_url.rstrip("/")
        self._services = services
        self._directory = services.core.directory
        self._tenant = services.tenant
        self._button_data = button_data
        core = services.core
        self._linking = LinkingConversation(
            services.linking, core.directory, core.preferences, services.tenant, services.public_url
        )
        self._selection = SelectionConversation(services, button_data, Ordering(services, status_tasks))
        self._status = StatusConversation(services, view, status_tasks)

    async def converse(self, event: DialogEvent, state: State) -> Turn:
        """Answer an event of any person."""
        user = await self._directory.users.by_contact(self._tenant, event.channel, event.address)
        if user and user.blocked:
            return Turn([])
        if event.button:
            return await self._pressed(event, user, state)
        linked = await self._linking.answer(event, user, state)
        if linked is not None:
            return linked
        assert user is not None  # linking answers all others
        return await self._written(event, user, state)

    async def _written(self, event: DialogEvent, user: User, state: State) -> Turn:
        match command_of(event.text):
            case "select":
                if is_teacher(user):
                    return await self._selection.begin(event, user)
                return say(text("select_not_allowed", user.locale), state)
            case "console":
                return say(await self._console_link(user), state)
            case "cancel":
                return say(text("cancelled", user.locale))
        answered = await self._selection.written(event, user, state)
        is_free = not answered and not is_teacher(user) and not event.text.startswith("/")
        if is_free and await self._services.replies.take(as_event(event)):
            return Turn([], state)
        return answered or say(text("not_understood", user.locale, help=text(help_of(user), user.locale)), state)

    async def _console_link(self, user: User) -> str:
        """Return the text with a link that signs the person in, once."""
        if not self._public_url:
            return text("console_not_set_up", user.locale)
        link = await self._sign_in_links.create(self._tenant, user.id)
        url = f"{self._public_url}/#/sign-in/{link}"
        return text("console_link", user.locale, url=url, time=duration(LINK_LIFETIME, user.locale))

    async def _pressed(self, event: DialogEvent, user: User | None, state: State) -> Turn:
        content, locale = self._button_data.read(event), locale_of(user, event)
        if content is None:
            return _notice("button_forged", locale, state)
        if user is None or not is_teacher(user):
            return _notice("button_not_allowed", locale, state)
        press = Press.read(content)
        if press is not None:
            return await self._selection.pressed(event, user, state, press)
        return await self._status.pressed(event, user, state, content)


def _notice(name: str, locale: str, state: State) -> Turn:
    return Turn([Reply(notice=text(name, locale))], state)
