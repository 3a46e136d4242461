"""What a delivery has arrives as it was given, or is named in the preview and in `not_shown`, or is refused (D-52).

Generated deliveries go through the couriers and the wire protocols to the simulated providers, and what a provider got
is compared with what was given.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from email import message_from_bytes
from email.policy import SMTPUTF8
from html import escape, unescape
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from core.errors import Invalid
from core.model.delivery import NewDelivery, Sender
from core.orders.check import check_content
from couriers.sending import (
    Attachment,
    AttachmentType,
    Button,
    Content,
    Courier,
    Message,
    ParseMode,
    Sent,
    utf16_length,
)
from couriers.sending.interface import WritesAsText
from couriers.sending.presentation import present
from couriers.sending.shown import Shown, display_of, shown_in
from tests.couriers.contract import Provider, message, running
from tests.couriers.max_provider import MaxProvider
from tests.couriers.telegram_bot_provider import BotApiProvider
from tests.couriers.telegram_provider import TelegramProvider
from tests.couriers.test_email import MailProvider
from tests.couriers.test_sms import SmsProvider
from tests.couriers.test_vk import VkProvider
from tests.support.hypothesis_settings import WITHOUT_SHRINKING


class Seen(NamedTuple):
    """What a person has got. `buttons`: label and data or address of each; `keyboard`: labels in place of the person's
    keyboard. `subject`: of a mail.
    """

    texts: Sequence[str]
    buttons: Sequence[tuple[str, str]] = ()
    keyboard: Sequence[str] = ()
    files: Sequence[str] = ()
    subject: str = ""


def seen_in_telegram(provider: Any, address: str) -> Seen:
    found = provider.server.messages(address)
    rows = [row.buttons for one in found for row in getattr(one.markup, "rows", None) or ()]
    every = list(chain.from_iterable(rows))
    pairs = [(one.text, _value_in_telegram(one.type)) for one in every]
    is_inline = any(type(one.markup).__name__ == "ReplyInlineMarkup" for one in found)
    files = [one.file.name for one in found if one.file]
    texts = [one.text for one in found if one.text]
    return Seen(texts, pairs, (), files) if is_inline else Seen(texts, (), [one.text for one in every], files)


def _value_in_telegram(kind: Any) -> str:
    data: bytes = getattr(kind, "data", b"")
    return getattr(kind, "url", "") or data.decode()


def seen_in_telegram_bot(provider: Any, address: str) -> Seen:
    found = provider.server.people.messages(int(address))
    texts = [one.get("text", one.get("caption", "")) for one in found]
    rows = [row for one in found for row in one.get("reply_markup", {}).get("inline_keyboard", ())]
    pairs = [(one["text"], one.get("url") or one["callback_data"]) for row in rows for one in row]
    keyboard = list(chain.from_iterable(provider.server.people.keyboard(int(address))))
    return Seen(
        list(filter(None, texts)), pairs, keyboard, [one["document"]["file_name"] for one in found if "document" in one]
    )


def seen_in_vk(provider: Any, address: str) -> Seen:
    (shown,) = (provider.server.people.shown(address, one.reference) for one in provider.state.inbox("vk", address))
    pairs = [(one["text"], one["url"] or json.loads(one["data"])["data"]) for row in shown["buttons"] for one in row]
    keyboard = [one["text"] for row in provider.server.people.keyboard(address) for one in row]
    return Seen([shown["text"]], pairs, keyboard, [one["name"] for one in shown["files"]])


def seen_in_max(provider: Any, address: str) -> Seen:
    found = provider.shown(address)
    every = [one for shown in found for row in shown["buttons"] for one in row]
    files = [one["name"] for shown in found for one in shown["files"]]
    pairs = [(one["text"], one["url"] or one["data"]) for one in every]
    is_inline = any(value for _, value in pairs)
    labels = [label for label, _ in pairs]
    texts = [one["text"] for one in found if one["text"]]
    return Seen(texts, pairs if is_inline else (), () if is_inline else labels, files)


_MAIL_BUTTON = re.compile(r'<a href="([^"]*)" style="[^"]*">([^<]*)</a>')


def seen_in_email(provider: Any, address: str) -> Seen:
    mail = message_from_bytes(provider.server.contents[-1], policy=SMTPUTF8)
    assert str(mail["To"]) == address
    body: Any = mail.get_body(("plain",))
    page: Any = mail.get_body(("html",))
    files = [one.get_filename() or "" for one in mail.iter_attachments()]
    html = page.get_payload(decode=True).decode()
    buttons = [(unescape(label), unescape(url)) for url, label in _MAIL_BUTTON.findall(html)]
    below = "".join(f"\r\n{label}: {url}" for label, url in buttons)
    text = body.get_payload(decode=True).decode()
    text = text.removesuffix(f"\r\n{below}") if below else text
    return Seen([text], buttons, files=files, subject=str(mail["Subject"]))


def seen_in_sms(provider: Any, address: str) -> Seen:
    return Seen(provider.received(address))


SEEN: Mapping[type[Provider], Callable[[Any, str], Seen]] = {
    TelegramProvider: seen_in_telegram,
    BotApiProvider: seen_in_telegram_bot,
    VkProvider: seen_in_vk,
    MaxProvider: seen_in_max,
    SmsProvider: seen_in_sms,
    MailProvider: seen_in_email,
}

HARD = (
    "\"'«»",
    "{0} {{x}} {text}",
    "<b>&amp;",
    "\\",
    "%s%d",
    "👩‍👩‍👧‍👦🇷🇺👍🏽",
    "й е\u0301",
    "שלום \u202eab\u202c مرحبا",
    "\n",
    "\r\n",
    "  ",
    "\t",
    "\u00a0",
    "\u2028",
    "=?utf-8?q?a?=",
    "\n.\n",
    "€^{}[~]|",
    "слово " * 30,
    "x" * 1001,
    "ж" * 4000,
)
any_letter = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
printable = st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])
shorter = tuple(one for one in HARD if len(one) < 40 and one.isprintable())
texts = (
    st.lists(st.sampled_from(HARD) | st.text(any_letter, max_size=20), min_size=1, max_size=6)
    .map("".join)
    .filter(lambda text: text == "" or text.strip())
)
labels = st.lists(st.sampled_from(shorter) | st.text(printable, max_size=12), min_size=1, max_size=5).map("".join)
addresses_of_sites = st.sampled_from(["https://example.org/?a=1&b=%22#ё", "http://example.org/путь"])
buttons = st.builds(Button, labels, labels.filter(bool)) | st.builds(Button, labels, url=addresses_of_sites)
names = labels.map(lambda name: re.sub("[/;]", "", name)).filter(
    lambda name: len(name.encode()) <= 200 and name.strip(". ")
)
"""Without a semicolon: aiohttp, with which the sandbox reads forms, takes no name with several."""


def rows_of(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.lists(one, min_size=1, max_size=9), min_size=1, max_size=4)


class Given(NamedTuple):
    text: str
    inline: Sequence[Sequence[Button]] = ()
    reply: Sequence[Sequence[str]] | None = None
    names: Sequence[str] = ()


everything = st.builds(
    Given,
    texts,
    st.just(()) | rows_of(buttons),
    st.none() | rows_of(labels),
    st.lists(names, max_size=3, unique_by=lambda name: normalize("NFC", name)),
)


def written(folder: Path, number: int, names: Sequence[str]) -> Iterator[Attachment]:
    inner = folder / str(number)
    inner.mkdir()
    for name in names:
        (inner / name).write_bytes(b"a file")
        yield Attachment(AttachmentType.DOCUMENT, path=str(inner / name))


async def delivered(courier: Courier, blank: Message, text: str, content: Content | None) -> Sent | None:
    """Send as the runtime does. Returns the outcome with all that is not shown; None if nothing can be sent."""
    as_text = courier.as_text(content) if content and isinstance(courier, WritesAsText) else ()
    presented = present(text, content, courier.shows, as_text)
    if presented.is_empty:
        return None
    (outcome,) = await courier.attempt([replace(blank, text=presented.text, content=presented.content)])
    assert isinstance(outcome, Sent), outcome
    return replace(outcome, not_shown=(*presented.not_shown, *outcome.not_shown))


def lines(text: str) -> str:
    """A mail has CR and LF at the end of each line."""
    return text.replace("\r\n", "\n")


def _written(wanted: Given) -> Iterator[tuple[str, str]]:
    """Emit what the text says of each button: its label, and its address if it has one."""
    yield from ((one.text, one.url) for row in wanted.inline for one in row)


def check(seen: Seen, wanted: Given, outcome: Sent, preview: Shown) -> None:
    """Everything is equal, or named both in the outcome and in the preview."""
    named, announced = set(outcome.not_shown), set(preview.not_shown)
    assert named == announced
    received = lines("".join(seen.texts))
    assert received == lines("".join(one.text for one in preview.messages))
    assert seen.subject == preview.subject
    assert received.startswith(lines(wanted.text)) or "text_end" in named
    every = [(one.text, one.url or one.data) for row in wanted.inline for one in row]
    if every and list(seen.buttons) != every:
        as_lines = all(label in received and (not one or one in received) for label, one in _written(wanted))
        assert "inline" in named or as_lines or "text_end" in named
    replies = list(chain.from_iterable(wanted.reply or ()))
    if replies and list(seen.keyboard) != replies:
        assert "reply" in named or all(label in received for label in replies) or "text_end" in named
    kept = [normalize("NFC", name) for name in wanted.names]
    if list(seen.files) != kept:
        lost = [name for name in wanted.names if normalize("NFC", name) not in seen.files]
        is_named = all(any(name in one for one in named) for name in lost) and len(seen.files) == len(kept)
        assert "document" in named or is_named, (seen.files, named)


@pytest.fixture(params=SEEN, ids=lambda kind: kind.module.__name__.rpartition(".")[2])
async def provider(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Provider]:
    async with running(request.param(tmp_path)) as opened:
        yield opened


SENDER = Sender("s")
numbers = count(1)


# The short form tries the same deliveries in every run; `--long`, which has more of them, tries others.
@settings(WITHOUT_SHRINKING, max_examples=settings().max_examples // 4, derandomize=settings().max_examples <= 100)
@given(wanted=everything)
@example(wanted=Given("text", [[Button("Да", "yes")]], [["Нет"]]))
@example(wanted=Given("text", [[Button(f"{number}", url="https://example.org") for number in range(9)]]))
@example(wanted=Given("text", [[Button("Да", "ж" * 33)]]))
@example(wanted=Given("text", names=['a"b.txt', "{0} отчёт.txt"]))
@example(wanted=Given("text", names=["=?utf-8?q?a?=", "b  "]))
@example(wanted=Given("", names=['a"b']))
@example(wanted=Given("", reply=[["Да"]], names=["a", "b"]))
@example(wanted=Given("слово " * 200, [[Button("Да", "yes")]], names=["a", "b"]))
@example(wanted=Given("слово " * 200, names=["a", "b"]))
@example(wanted=Given("ж" * 4096, [[Button("Л" * 41, "a")]]))
async def test_what_arrives_is_what_was_given_or_named(provider: Provider, tmp_path: Path, wanted: Given) -> None:
    courier = provider.opened[0] if provider.opened else await provider.open()
    number = next(numbers)
    content = Content(
        inline=wanted.inline, reply=wanted.reply, attachments=list(written(tmp_path, number, wanted.names))
    )
    some = None if content == Content() else content
    try:
        check_content(NewDelivery("t", SENDER, wanted.text, (), [courier.channel], content=some))
    except Invalid as refusal:
        event(refusal.code)
        return
    address = provider.address(number)
    preview = shown_in(display_of(courier), wanted.text, some)
    if outcome := await delivered(courier, message(address, "", f"delivery {number}"), wanted.text, some):
        check(SEEN[type(provider)](provider, address), wanted, outcome, preview)
    else:
        assert preview.is_empty


# marks

KINDS = ("bold", "italic", "underline", "strikethrough", "code", "link")
TARGET = "https://example.org/?a=1&b=2"
TAGS = dict(zip(KINDS, ("b", "i", "u", "s", "code", f'a href="{escape(TARGET)}"'), strict=True))
SIGNS = dict(zip(KINDS, ("*", "_", "__", "~", "`", ""), strict=True))
pieces = st.lists(
    st.tuples(st.sampled_from((*shorter, "слово", "a\nb")).filter(str.strip), st.sampled_from(("", *KINDS))),
    min_size=1,
    max_size=6,
)


def as_html(text: str, kind: str) -> str:
    return f"<{TAGS[kind]}>{escape(text)}</{TAGS[kind].split()[0]}>" if kind else escape(text)


def as_markdown(text: str, kind: str) -> str:
    inside = re.sub(r"([_*\[\]()~`>#+\-=|{}.!\\])", r"\\\1", text)
    return f"[{inside}]({TARGET})" if kind == "link" else f"{SIGNS.get(kind, '')}{inside}{SIGNS.get(kind, '')}"


def marked_ranges(provider: Any, address: str) -> list[list[tuple[str, int, int]]]:
    """Return kind, offset and length of each mark of each message, as a person sees it."""
    if isinstance(provider, TelegramProvider):
        found = [one.entities or () for one in provider.server.messages(address)]
        return [[(type(one).__name__[13:].lower(), one.offset, one.length) for one in entities] for entities in found]
    people = provider.server.people.messages(int(address))
    return [[(one["type"], one["offset"], one["length"]) for one in shown.get("entities", ())] for shown in people]


SAME = {"strike": "strikethrough", "texturl": "link", "text_link": "link"}
"""What Telegram calls a mark otherwise."""


@pytest.mark.parametrize("provider", [TelegramProvider, BotApiProvider], indirect=True)
@pytest.mark.parametrize("mode", [ParseMode.HTML, ParseMode.MARKDOWN_V2])
@settings(WITHOUT_SHRINKING, max_examples=settings().max_examples // 4, derandomize=settings().max_examples <= 100)
@given(given_pieces=pieces)
async def test_marks_arrive_where_they_were_given(
    provider: Provider, mode: ParseMode, given_pieces: Sequence[tuple[str, str]]
) -> None:
    courier = provider.opened[0] if provider.opened else await provider.open()
    write = as_html if mode is ParseMode.HTML else as_markdown
    text, plain = " ".join(write(*one) for one in given_pieces), " ".join(piece for piece, _ in given_pieces)
    expected, start = [], 0
    for piece, kind in given_pieces:
        expected += [(kind, start, utf16_length(piece))] if kind else []
        start += utf16_length(piece) + 1
    address = provider.address(next(numbers))
    outcome = await delivered(courier, message(address, "", f"marks {address}"), text, Content(mode))
    assert outcome
    seen = SEEN[type(provider)](provider, address)
    (found,) = marked_ranges(provider, address)
    assert ("".join(seen.texts), outcome.not_shown) == (plain, ())
    assert sorted((SAME.get(kind, kind), *place) for kind, *place in found) == sorted(expected)
