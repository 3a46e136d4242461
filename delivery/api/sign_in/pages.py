"""The pages of a sign-in, each in English and Russian. Everything that comes from outside is escaped. Pure."""

from collections.abc import Sequence
from hashlib import sha256
from html import escape
from string import Template

from core.errors import Refused
from delivery.api.pages import read_page
from providers.sign_in import Invitation

_REFUSALS = {
    "SIGN_IN_UNKNOWN": (
        "The address works once, within its time: ask for a new one.",
        "Адрес действует один раз и недолго: получите новый.",
    ),
    "SIGN_IN_OTHER_BROWSER": (
        "This sign-in was begun in another browser: finish it there, or ask for a new address.",
        "Вход начат в другом браузере: закончите его там или получите новый адрес.",
    ),
    "SIGN_IN_NOT_CONFIRMED": (
        "Open the address again, and press the button of the page. The browser has to allow cookies.",
        "Откройте адрес снова и нажмите кнопку на странице. Браузер должен разрешать cookie.",
    ),
    "SIGN_IN_REFUSED": (
        "The service did not allow it. You can ask for a new address.",
        "Сервис не разрешил вход. Можно получить новый адрес.",
    ),
    "SIGN_IN_FAILED": (
        "The service did not answer as it should. Ask for a new address in a few minutes.",
        "Сервис ответил не так, как должен. Получите новый адрес через несколько минут.",
    ),
}
_ANY = ("Ask for a new address.", "Получите новый адрес.")


def page_that_asks(invitation: Invitation, jobs: Sequence[str], confirmation: str) -> str:
    """Return the page that names the person whose jobs will use the account, with the button to go on."""
    user = invitation.signed_in.user
    person = f"{invitation.person} ({user})" if invitation.person else user
    return _filled(
        "sign_in.html",
        service=invitation.signed_in.service,
        person=person,
        jobs=", ".join(jobs) or "–",
        confirmation=confirmation,
    )


def signed_in_page() -> str:
    return read_page(__package__, "signed_in.html")


def refused_page(refusal: Refused) -> str:
    english, russian = _REFUSALS.get(refusal.code, _ANY)
    return _filled("not_signed_in.html", english=english, russian=russian, code=refusal.code)


def confirmation(link: str, browser: str) -> str:
    """Return what the form of the page has for one browser. Another site can send a form, but does not know this."""
    return sha256(f"{link} {browser}".encode(errors="replace")).hexdigest()


def _filled(page: str, **values: str) -> str:
    return Template(read_page(__package__, page)).substitute({name: escape(value) for name, value in values.items()})
