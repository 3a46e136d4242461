"""Links the contact of a writer to a person of the directory, and unlinks it; /help, /settings (D-28, D-29, D-30).

    /start ─▶ the bot asks for the e-mail address ─▶ a code is mailed ─▶ the person writes the code ─▶ linked

An e-mail address and a code are understood at any time, so it needs only text, and little of the state. It answers
everything that a person without a link writes; of what a linked person writes, only its commands.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from bots.catalogue import text
from bots.conversation.commands import command_of, help_of
from bots.conversation.state import CODE, EMAIL, IDLE, SENT, State, Turn, say
from bots.dialog_event import DialogEvent
from core.directory import Directory
from core.directory.linking import Linking, is_code
from core.directory.preferences import Preferences
from core.errors import Refused
from core.model.people import User, faults_of_email
from scenarios.sending.phrases import duration

# code of a refusal → what the bot waits for next
_NEXT: Mapping[str, str] = {
    "EMAIL_UNKNOWN": EMAIL,
    "CONTACT_LINKED": "",
    "CODE_MISSING": EMAIL,
    "CODE_WRONG": CODE,
    "CODE_EXPIRED": EMAIL,
    "TOO_MANY_GUESSES": EMAIL,
    "TOO_MANY_MAILS": EMAIL,
    "MAIL_NOT_SET_UP": "",
    "MAIL_REFUSED": EMAIL,
    "MAIL_UNAVAILABLE": EMAIL,
    "IMPORT_RUNNING": CODE,
}


class LinkingConversation:
    """One per process and tenant. `public_url`: under which people reach the pages, "" if they cannot. `help_of`: the
    name of the help text for a person.
    """

    def __init__(
        self,
        linking: Linking,
        directory: Directory,
        preferences: Preferences,
        tenant: str,
        public_url: str = "",
        help_of: Callable[[User | None], str] = help_of,
    ) -> None:
        self._linking = linking
        self._directory = directory
        self._preferences = preferences
        self._tenant = tenant
        self._public_url = public_url.rstrip("/")
        self._help_of = help_of

    async def answer(self, event: DialogEvent, user: User | None, state: State) -> Turn | None:
        """Answer /start, /help, /settings and /unlink, and everything that a person without a linked contact writes;
        None for the rest. `user`: who has the contact. Raises StoreError.
        """
        locale = locale_of(user, event)
        match command_of(event.text):
            case "start" | "link":
                if user is None and (linked := await self._open_link(event, state, locale)):
                    return linked
                return say(self._greeting(user, locale), State() if user else State(EMAIL))
            case "help":
                return say(text(self._help_of(user), locale), state)
            case "unlink":
                return await self._unlink(event, locale)
        if user is None:
            return await self._link(event, state, locale)
        return await self._of_linked(event, user, state, locale)

    async def _of_linked(self, event: DialogEvent, user: User, state: State, locale: str) -> Turn | None:
        if command_of(event.text) == "settings":
            return say(await self._settings(event, locale), state)
        if state.step == CODE and is_code(event.text):  # linked by an attempt that was interrupted, or elsewhere
            return say(self._linked(user, locale))
        if state.step in (IDLE, EMAIL, CODE, SENT) and _is_email(event.text.strip()):
            return say(text("link_contact_linked", locale))
        return None

    def _greeting(self, user: User | None, locale: str) -> str:
        if user is None:
            return text("link_start", locale)
        return text("link_start_again", locale, name=user.name or user.id, help=text(self._help_of(user), locale))

    async def _open_link(self, event: DialogEvent, state: State, locale: str) -> Turn | None:
        """Return the step that a deep link asks for, whose payload is a code or an e-mail address; None without one."""
        payload = event.text.partition(" ")[2].strip()
        is_known = is_code(payload) or _is_email(payload)
        return await self._link(replace(event, text=payload), state, locale) if is_known else None

    async def _link(self, event: DialogEvent, state: State, locale: str) -> Turn:
        """Take one step towards a linked contact."""
        written = event.text.strip()
        try:
            if "@" in written:
                return await self._request(event, written, locale)
            if written and (state.step == CODE or is_code(written)):
                return await self._confirm(event, written, locale)
        except Refused as refusal:
            return _refused(refusal, locale)
        return say(text("link_start", locale), State(EMAIL))

    async def _request(self, event: DialogEvent, email: str, locale: str) -> Turn:
        if not _is_email(email):
            return say(text("link_email_malformed", locale), State(EMAIL))
        request = await self._linking.request(self._tenant, event.channel, event.address, email)
        left = duration(request.expires_at - datetime.now(UTC), locale)
        return say(text("link_code_mailed", locale, email=email, time=left), State(CODE))

    async def _confirm(self, event: DialogEvent, code: str, locale: str) -> Turn:
        link = await self._linking.confirm(self._tenant, event.channel, event.address, code)
        user = await self._directory.users.find(self._tenant, link.user)
        return say(self._linked(user, user.locale))

    def _linked(self, user: User, locale: str) -> str:
        return text("link_done", locale, name=user.name or user.id, help=text(self._help_of(user), locale))

    async def _settings(self, event: DialogEvent, locale: str) -> str:
        """Return the text with the link of the page on which a person chooses what it receives."""
        if not self._public_url:
            return text("console_not_set_up", locale)
        token = await self._preferences.token(self._tenant, event.channel, event.address)
        return text("settings_link", locale, url=f"{self._public_url}/p/{token}")

    async def _unlink(self, event: DialogEvent, locale: str) -> Turn:
        try:
            await self._linking.unlink(self._tenant, event.channel, event.address)
        except Refused as refusal:
            if refusal.code != "CONTACT_NOT_LINKED":
                return _refused(refusal, locale)
            return say(text("link_not_linked", locale))
        return say(text("link_unlinked", locale))


def locale_of(user: User | None, event: DialogEvent) -> str:
    """Return the language of a person; that of the channel's account for an unknown person."""
    return user.locale if user else event.locale


def _is_email(written: str) -> bool:
    return next(faults_of_email(written), None) is None


def _refused(refusal: Refused, locale: str) -> Turn:
    """Return the text for a refusal of `core.directory.linking`. Raises a refusal without a text."""
    if refusal.code not in _NEXT:
        raise refusal
    wait = duration(refusal.retry_after, locale) if refusal.retry_after else ""
    return say(text(f"link_{refusal.code.lower()}", locale, time=wait), State(_NEXT[refusal.code]))
