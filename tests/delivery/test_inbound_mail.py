"""Mails that answer messages, over HTTP: a reply reaches the sender's inbox, and the answer is mailed to the person."""

import asyncio
import smtplib
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from core.admission import quotas
from core.errors import StoreUnavailable
from core.queue import Worker
from core.redis.keys import KEYS
from core.threads import ReplyWorker
from core.threads.mailed_replies import MailedReplies, MailResult
from core.updates.answer_worker import AnswerWorker
from couriers.email.courier import Settings
from couriers.email.courier import open as open_email
from couriers.email.receive import ImapServer, LmtpServer, Mailbox
from couriers.receiving.poller import Poller, PollerLease, Sink
from couriers.sending.runtime import Runtime
from delivery.http.options import Inbound, Options
from sandbox.mail import SmtpServer
from sandbox.state import SandboxState
from tests.core.threads.test_metadata import chunk
from tests.delivery.conftest import Api, ApiResponse
from tests.support.audited import dump
from tests.support.dovecot import Dovecot, dovecot
from tests.support.servers import Server, needs_package
from tests.support.serving import serving
from tests.support.stack import QUICK
from tests.support.waiting import until

MAILBOX, MARIA, ANNA = "reply@school.example", "maria@home.example", "anna@school.example"
REASON = {"Ada-Reason": "helpdesk"}


@pytest.fixture
def options() -> Options:
    return Options(inbound=Inbound({"email": "s3cret"}, mailbox=MAILBOX))


@dataclass
class School:
    """A teacher, a student with an e-mail address, and the mail server by which Ada sends."""

    api: Api
    smtp: SmtpServer

    async def send(self, text: str = "No classes", replies: str | None = "sender", **more: Any) -> str:
        body = {"sender": {"id": 7}, "text": text, "recipients": [{"id": 1}], "channels": ["email"], **more}
        sent = await self.api.call("POST", "/v1/deliveries", body | ({"replies": replies} if replies else {}))
        assert sent.status == 202, sent
        return str(sent.json["id"])

    async def mails(self, number: int) -> list[EmailMessage]:
        """Return all mails that went out, when there are so many."""
        await until(lambda: len(self.smtp.contents) >= number)
        return [message_from_bytes(one, policy=policy.default) for one in self.smtp.contents]

    async def write(self, to: str, text: str, author: str = MARIA, **headers: str) -> ApiResponse:
        return await post(self.api, a_mail(to, text, author, **headers))

    async def words(self) -> list[str]:
        """Return the messages in the teacher's inbox, the oldest first."""
        page = (await self.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
        if not page["threads"]:
            return []
        found = await self.api.call("GET", f"/v1/threads/{page['threads'][0]['id']}", headers=REASON)
        assert MARIA.encode() not in found.body
        return [one["text"] for one in reversed(found.json["messages"])]


def a_mail(
    to: str, text: str, author: str = MARIA, message_id: str = "<1@home.example>", **headers: str
) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Message-ID"] = f"Masha <{author}>", to, message_id
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


async def post(api: Api, mail: EmailMessage, secret: str = "s3cret") -> ApiResponse:
    headers = {"Authorization": "", "Content-Type": "message/rfc822"}
    return await api.call("POST", f"/v1/inbound/mail?secret={secret}", mail.as_bytes(), headers=headers)


@pytest.fixture
async def school(api: Api, tmp_path: Path) -> AsyncIterator[School]:
    core, runtime = api.services.core, Runtime(api.store, "email", replace(QUICK, mailbox=MAILBOX))
    replies = ReplyWorker(api.store, core.client, core.directory, core.threads, core.relay)
    await replies.open()
    worker = replies.worker()
    async with serving(SmtpServer(SandboxState())) as smtp:
        await runtime.add(await open_email(Settings(smtp.url), tmp_path))
        running = [asyncio.create_task(one.run()) for one in (runtime, worker)]
        await until(lambda: runtime.claims > 0)
        maria: dict[str, Any] = {"id": 1, "name": "Maria", "role": "student", "locale": "en"}
        await api.call("POST", "/v1/users", {**maria, "contacts": {"email": [MARIA]}, "email": "m@work.example"})
        await api.call("POST", "/v1/users", {"id": 7, "name": "Anna Petrova", "role": "trainer"})
        yield School(api, smtp)
        runtime.stop()
        worker.stop()
        await asyncio.gather(*running)


async def test_a_mail_that_answers_reaches_the_inbox_and_the_answer_is_mailed(school: School) -> None:
    await school.send()
    first, *_ = await school.mails(1)
    address = str(first["Reply-To"])
    local, _, domain = address.partition("@")
    assert (local.lower(), domain, local[:6]) == (local, "school.example", "reply+")
    assert len(local) <= 64
    quoting = f"And on Friday?\n\nOn Fri, Nov 27, 2026 at 12:00 PM School <{address}> wrote:\n\n> No classes\n"
    hidden = {"Subject": "Re: No classes of Masha", "X_Originating_IP": "10.1.2.3"}
    assert (await school.write(address.upper(), quoting, **hidden)).json == {"result": "taken"}
    assert (await school.write(address, quoting, **hidden)).json == {"result": "repeated"}
    await until(school.words)
    assert await school.words() == ["And on Friday?"]
    page = (await school.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
    assert (page["threads"][0]["person"], page["threads"][0]["channel"]) == ({"id": 1, "name": "Maria"}, "email")
    where = f"/v1/threads/{page['threads'][0]['id']}/messages"
    await school.api.call("POST", where, {"text": "At ten."}, headers=REASON)
    answer = next(one for one in await school.mails(3) if "At ten." in one.as_string())
    assert answer["To"] == MARIA
    assert not [part for part in ("Masha", "10.1.2.3", "1@home.example") if part in answer.as_string()]
    await school.write(str(answer["Reply-To"]), "Thanks!", author="m@work.example", message_id="<2@work.example>")
    await until(lambda: _has(school, 3))
    assert await school.words() == ["And on Friday?", "At ten.", "Thanks!"]


async def test_what_is_not_of_its_person_or_of_nobody_is_refused_or_left_out(school: School) -> None:
    await school.send()
    (mail,) = await school.mails(1)
    to = str(mail["Reply-To"])
    forged = to[:20] + ("a" if to[20] != "a" else "b") + to[21:]
    for wrong in (forged, "reply+x@school.example", "reply@school.example", to.replace("school", "other")):
        refused = await school.write(wrong, "Hello")
        assert (refused.status, refused.code) == (403, "MAIL_TOKEN_WRONG")
    assert (await post(school.api, a_mail(to, "Hello"), "wrong")).code == "INBOUND_SECRET_WRONG"
    broken = await school.api.call(
        "POST", "/v1/inbound/mail?secret=s3cret", b"To: :;'a?=\r\n\r\ntext", headers={"Content-Type": "message/rfc822"}
    )
    assert (broken.status, broken.code) == (400, "MAIL_MALFORMED")
    machine = await school.write(to, "I am away.", Auto_Submitted="auto-replied")
    assert machine.json == {"result": "automatic"}
    figures = (await school.api.call("GET", "/metrics")).body
    assert b'ada_inbound_mails_total{result="automatic"} 1.0' in figures
    for number in (5, 6):
        quoting = await school.write(to, "> No classes", message_id=f"<{number}@home>")
        assert quoting.json == {"result": "empty"}
    assert (await school.write(to, "Me again", message_id="<2@home>")).json == {"result": "taken"}
    await until(school.words)
    assert await school.words() == ["Me again"], "what came before it is not stored"
    _, *told = map(plain_text, await school.mails(3))
    empty = "This was not passed on: it has neither words nor files of its own."
    noted = "Noted: Anna Petrova can read it in the console."
    assert sorted(told) == sorted([empty, noted]), "the machine gets no mail, and of two empty one"


async def test_a_mail_that_may_be_forged_is_passed_on_with_a_mark_and_confirms_nothing(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    to = str(first["Reply-To"])
    await school.write(to, "Call me: +79991234567", message_id="<0@home>")
    _, asked = await school.mails(2)
    await school.write(str(asked["Reply-To"]), "1", "mallory@home.example", message_id="<1@evil>")
    failed = {"Authentication_Results": "mx.school.example; dkim=fail; dmarc=fail (p=reject) header.from=home.example"}
    await school.write(to, "STOP", message_id="<2@evil>", **failed)
    await school.write(to, "Two authors", f"x@y.example>, <{MARIA}", message_id="<3@evil>")
    passed = {"Authentication_Results": "mx.school.example; dmarc=pass"}
    await school.write(to, "Me", message_id="<4@home>", **passed)
    await until(lambda: _has(school, 4))
    assert await school.words() == ["1", "STOP", "Two authors", "Me"]
    page = (await school.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
    found = await school.api.call("GET", f"/v1/threads/{page['threads'][0]['id']}", headers=REASON)
    assert [one["unverified"] for one in reversed(found.json["messages"])] == [True, True, True, False]
    person = (await school.api.call("GET", "/v1/users/1")).json
    assert not person.get("opt_out")


async def test_who_types_an_address_is_asked_by_mail_and_a_file_is_stored(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    mail = a_mail(str(first["Reply-To"]), "Call me: +79991234567")
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="work.pdf")
    assert (await post(school.api, mail)).json == {"result": "taken"}
    _, asked = await school.mails(2)
    assert await school.words() == []
    confirmed = await school.write(str(asked["Reply-To"]), "1\n\n> 1. Send", message_id="<2@home>")
    assert confirmed.json == {"result": "taken"}
    await until(school.words)
    assert await school.words() == ["Call me: +79991234567"]
    page = (await school.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
    found = await school.api.call("GET", f"/v1/threads/{page['threads'][0]['id']}", headers=REASON)
    assert [one["name"] for one in found.json["messages"][0]["attachments"]] == ["work.pdf"]


async def test_what_a_mail_has_and_is_not_passed_on_is_named_to_both_sides(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    mail, attached = a_mail(str(first["Reply-To"]), "See there"), a_mail("x@y.example", "secret", message_id="<9@home>")
    mail.add_attachment(attached)
    mail.add_attachment(png(), maintype="image", subtype="png", cid="<a>", filename="a.png", disposition="inline")
    mail.add_attachment(b"\x89PNG\r\n\x1a\nbroken", maintype="image", subtype="png", filename="b.png")
    assert (await post(school.api, mail)).json == {"result": "taken"}
    assert "Files that were not passed on: 2." in plain_text((await school.mails(2))[1])
    page = (await school.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
    found = await school.api.call("GET", f"/v1/threads/{page['threads'][0]['id']}", headers=REASON)
    (message,) = found.json["messages"]
    assert (message["text"], message["files"], len(message["attachments"])) == ("See there", 2, 1)


async def test_nothing_of_a_thread_is_left_when_its_person_is_deleted(school: School, api: Api, server: Server) -> None:
    await api.call("PATCH", "/v1/users/7", {"contacts": {"email": [ANNA]}})
    await school.send()
    (first,) = await school.mails(1)
    mail = a_mail(str(first["Reply-To"]), "words of a child")
    mail.add_attachment(b"a text", maintype="text", subtype="plain", filename="child.txt")
    await post(api, mail)
    await school.write(str(first["Reply-To"]), "Mine is child@home.example", message_id="<7@home>")
    relayed = next(one for one in await school.mails(4) if one["To"] == ANNA)
    await school.write(str(relayed["Reply-To"]), "answer to a child", author=ANNA, message_id="<8@school>")
    answered = await school.mails(5)
    assert "answer to a child" in answered[-1].as_string()
    secrets = (MARIA, "words of a child", "child.txt", "child@home", "answer to a child")

    async def kept() -> list[str]:
        everything = str(await dump(server.url))
        return [one for one in secrets if one in everything]

    assert await kept() == list(secrets)
    assert (await api.call("DELETE", "/v1/users/1")).status == 204
    assert await kept() == []


def plain_text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content()).strip()


def png() -> bytes:
    """Return a large picture of one grey dot."""
    dots = chunk(b"IDAT", zlib.compress(bytes(30_000), 0))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes(13)) + dots + chunk(b"IEND", b"")


async def test_of_a_mail_with_eleven_files_ten_are_stored_and_passed_on(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    mail = a_mail(str(first["Reply-To"]), "Our pictures")
    for number in range(11):
        mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename=f"{number}.pdf")
    assert (await post(school.api, mail)).json == {"result": "taken"}
    await until(school.words)
    page = (await school.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
    newest = page["threads"][0]["newest"]
    assert ([one["name"] for one in newest["attachments"]], newest["files"]) == ([f"{n}.pdf" for n in range(10)], 1)
    stored = await school.api.store.command("ZCARD", KEYS["uploadlist"].at(0, "default"))
    assert stored == 10, "a file that nobody sees is not stored"


def a_bounce(of: EmailMessage, to: str, *, action: str = "failed", headers_only: bool = True) -> bytes:
    """Return a report as Postfix writes it."""
    headers = "".join(f"{name}: {text}\r\n" for name, text in of.items())
    kind, original = ("text/rfc822-headers", headers) if headers_only else ("message/rfc822", of.as_string())
    lines = [
        "Return-Path: <>",
        "From: MAILER-DAEMON@mx.school.example (Mail Delivery System)",
        f"To: {to}",
        "Subject: Undelivered Mail Returned to Sender",
        "Auto-Submitted: auto-replied",
        "MIME-Version: 1.0",
        'Content-Type: multipart/report; report-type=delivery-status; boundary="B/mx"',
        *("", "--B/mx", "Content-Type: text/plain; charset=us-ascii", "", "I'm sorry to have to inform you", ""),
        *("--B/mx", "Content-Type: message/delivery-status", "", "Reporting-MTA: dns; mx.school.example", ""),
        *(f"Final-Recipient: rfc822; {MARIA}", f"Action: {action}", "Status: 5.1.1"),
        *("Diagnostic-Code: smtp; 550 5.1.1 <maria@home.example>: Recipient address", "    rejected: no such user", ""),
        *("--B/mx", f"Content-Type: {kind}", "", original, "", "--B/mx--", ""),
    ]
    return "\r\n".join(lines).encode()


async def bounce(school: School, raw: bytes) -> str:
    headers = {"Authorization": "", "Content-Type": "message/rfc822"}
    answer = await school.api.call("POST", "/v1/inbound/mail?secret=s3cret", raw, headers=headers)
    return str(answer.json["result"])


async def test_who_was_asked_about_addresses_too_often_is_told_once_that_a_message_is_not_passed_on(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MOST_REPLIES", 0)
    await school.send()
    (first,) = await school.mails(1)
    for number in range(2):
        await school.write(str(first["Reply-To"]), "Call me: +79991234567", message_id=f"<{number}@home>")
    await school.write(str(first["Reply-To"]), "Call me", message_id="<2@home>")
    await until(school.words)
    assert await school.words() == ["Call me"]
    texts = [one.as_string() for one in await school.mails(3)]
    assert len([text for text in texts if "was not passed on: contacts" in text]) == 1


@pytest.mark.parametrize("headers_only", [True, False])
async def test_a_bounce_turns_sent_into_failed_with_the_words_of_the_server(school: School, headers_only: bool) -> None:
    await school.send(replies=None)
    (mail,) = await school.mails(1)
    assert mail["Reply-To"] is None
    await until(lambda: _status(school, "sent"))
    delayed = a_bounce(mail, "ada@sandbox.example", action="delayed", headers_only=headers_only)
    assert await bounce(school, delayed) == "automatic"
    assert await _status(school, "sent")
    report = a_bounce(mail, "ada@sandbox.example", headers_only=headers_only)
    assert [await bounce(school, report) for _ in range(2)] == ["bounced", "bounced"]
    (outcome,) = await _outcomes(school)
    assert (outcome["status"], outcome["reason"]) == ("failed", "recipient_unreachable")
    assert outcome["detail"] == "550 5.1.1 <maria@home.example>: Recipient address rejected: no such user"
    assert await school.words() == []
    assert len(school.smtp.contents) == 1, "a bounce gets no answer"


async def test_what_ada_itself_says_is_marked_as_automatic_and_its_own_mails_are_no_replies(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    assert first["Auto-Submitted"] is None
    assert "NDR" not in str(first["X-Auto-Response-Suppress"]), "bounces are wanted"
    await school.write(str(first["Reply-To"]), "And on Friday?")
    _, notice = await school.mails(2)
    assert notice["Auto-Submitted"] == "auto-replied"
    returned = await school.write(str(first["Reply-To"]), "No classes", Errors_To=str(notice["Errors-To"]))
    assert returned.json == {"result": "automatic"}


@pytest.mark.parametrize("known_by", [{"contacts": {"email": [ANNA]}}, {"email": ANNA}])
async def test_a_teacher_answers_by_mail_and_a_forged_answer_goes_to_nobody(
    school: School, known_by: dict[str, Any]
) -> None:
    await school.api.call("PATCH", "/v1/users/7", {**known_by, "locale": "ru"})
    await school.send()
    (first,) = await school.mails(1)
    await school.write(str(first["Reply-To"]), "And on Friday?")
    relayed = next(one for one in await school.mails(3) if one["To"] == ANNA)
    assert _text(relayed).startswith("Maria отвечает на «No classes»:\nAnd on Friday?\n")
    assert MARIA not in relayed.as_string()
    to, quote = str(relayed["Reply-To"]), f"\n\nOn Fri, Nov 27, 2026 at 12:00 PM <{relayed['Reply-To']}> wrote:\n> x"
    for number in (1, 2):
        await school.write(to, "The exam is cancelled", "mallory@evil.example", message_id=f"<{number}@evil>")
    warned = (await school.mails(4))[-1]
    assert (warned["To"], warned["Auto-Submitted"]) == (ANNA, "auto-replied")
    await school.write(to, f"At ten.{quote}", ANNA, message_id="<3@school.example>")
    answer = (await school.mails(5))[-1]
    assert (answer["To"], answer["Auto-Submitted"]) == (MARIA, None)
    assert _text(answer) == "Anna Petrova answers:\nAt ten."
    assert ANNA not in answer.as_string()
    assert await school.words() == ["And on Friday?", "At ten."]


@contextmanager
def reading(school: School, server: Dovecot, sink: Sink | None = None) -> Iterator[list[str]]:
    """Read the mailbox; the results are added to the list."""
    core, results = school.api.services.core, list[str]()
    replies = MailedReplies(
        *(core.store, core.client, core.directory, school.api.services.uploads, "email", MAILBOX), results.append
    )
    mailbox, lease = Mailbox(ImapServer.parse(server.url), pause=0.02), PollerLease(core.store)
    poller = Poller(core.store, mailbox, sink or replies, lease)
    running = [asyncio.create_task(one.run()) for one in (poller, lease)]
    try:
        yield results
    finally:
        mailbox.close()
        for one in running:
            one.cancel()


@needs_package("dovecot-imapd", "/usr/sbin/dovecot")
async def test_mails_of_a_mailbox_become_replies_once_and_stay_as_they_are(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    to = str(first["Reply-To"])
    with dovecot() as server:
        server.put(a_mail("reply@school.example", "Buy now", message_id="<spam@x>").as_bytes())
        server.put(a_mail(to, "And on Friday?").as_bytes())
        with reading(school, server) as results:
            await until(lambda: len(results) == 2)
            server.put(a_bounce(first, to))
            server.put(a_mail(to, "And when?", message_id="<2@home.example>").as_bytes())
            await until(lambda: len(results) == 4)
        assert results == ["refused", "taken", "bounced", "taken"]
        await until(lambda: _has(school, 2))
        server.number_anew()
        server.put(a_mail(to, "Where?", message_id="<3@home.example>").as_bytes())
        with reading(school, server) as results:
            await until(lambda: len(results) == 5)
        assert sorted(results) == ["bounced", "refused", "repeated", "repeated", "taken"]
        await until(lambda: _has(school, 3))
        assert await school.words() == ["And on Friday?", "And when?", "Where?"]
        assert not [one for one in server.flags() if b"Seen" in one]


def hand_over(port: int, recipients: list[str], mail: bytes) -> tuple[list[int], list[bytes]]:
    """Hand a mail over as a mail server does; return the answers to its recipients, and those to the mail."""
    with smtplib.LMTP("127.0.0.1", port, local_hostname="mx") as client:
        client.ehlo_or_helo_if_needed()
        client.mail("masha@home.example")
        asked = [client.rcpt(one)[0] for one in recipients]
        if 250 not in asked:
            return asked, []
        _, first = client.data(mail)
        answers = [first]
        while len(answers) < asked.count(250):
            answers.append(client.getreply()[1])
        return asked, answers


async def test_a_mail_server_hands_mails_over_by_lmtp_and_has_an_answer_for_each_recipient(school: School) -> None:
    await school.send()
    await school.send("Bring skates")
    addresses = [str(one["Reply-To"]) for one in await school.mails(2)]
    core = school.api.services.core
    replies = MailedReplies(core.store, core.client, core.directory, school.api.services.uploads, "email", MAILBOX)
    server = LmtpServer(MAILBOX, replies.take, "127.0.0.1", 0)
    await server.start()
    mail = a_mail("undisclosed-recipients:;", "And on Friday?").as_bytes()
    forged = f"reply+{'a' * 50}@school.example"
    try:
        to = [addresses[0], "anna@school.example", forged, addresses[1]]
        asked, answers = await asyncio.to_thread(hand_over, server.port, to, mail)
        assert asked == [250, 550, 250, 250]
        wrong = b"5.1.1 This address was not made here, or is no longer valid"
        assert answers == [b"2.0.0 taken", wrong, b"2.0.0 repeated"], "both are of one person, who wrote one mail"
        assert await asyncio.to_thread(hand_over, server.port, to[:1], mail) == ([250], [b"2.0.0 repeated"])
        machine = a_mail("x@y", "I am away", message_id="<2@home>", Auto_Submitted="auto-replied").as_bytes()
        assert await asyncio.to_thread(hand_over, server.port, to[:1], machine) == ([250], [b"2.0.0 automatic"])
        await until(school.words)
        assert await school.words() == ["And on Friday?"]
        broken = LmtpServer(MAILBOX, without_store, "127.0.0.1", 0)
        await broken.start()
        later = await asyncio.to_thread(hand_over, broken.port, to[:1], mail)
        assert later == ([250], [b"4.3.0 The store cannot be reached; try again later"])
        await broken.stop()
    finally:
        await server.stop()


async def without_store(raw: bytes, recipients: Sequence[str]) -> None:
    raise StoreUnavailable("the store is away")


async def test_stop_by_mail_is_no_answer_to_a_question_for_a_text(school: School) -> None:
    """It was counted as one, and the person went on getting mails."""
    delivery = await school.send("How was it?", "sender", answer={"kind": "text"})
    (mail,) = await school.mails(1)
    await school.write(str(mail["Reply-To"]), "Стоп.")

    async def opt_out() -> bool:
        return bool((await school.api.call("GET", "/v1/users/1")).json["opt_out"] == ["email"])

    await until(opt_out)
    history = (await school.api.call("GET", f"/v1/deliveries/{delivery}")).json
    assert history["answers"]["answered"] == 0
    assert _text((await school.mails(2))[-1]).startswith("You get no more messages here.")


@pytest.mark.parametrize("replies", ["sender", None])
async def test_a_mail_answers_the_question_to_which_it_replies(school: School, replies: str | None) -> None:
    worker, running = await _presses(school)
    options = [{"key": "yes", "text": "I come"}, {"key": "no", "text": "I do not come"}]
    delivery = await school.send("Skating?", replies, answer={"kind": "choice", "options": options})
    (mail,) = await school.mails(1)
    to = str(mail["Reply-To"])
    forged = await school.write(to, "2", author="mallory@evil.example", message_id="<0@evil>")
    assert forged.json == {"result": "taken"}
    for _ in range(2):
        await school.write(to, "I come, but later\n\nMaria\n\n> Skating?")
    await until(lambda: _answered(school, delivery, "yes"))
    (answer,) = await _answers(school, delivery)
    assert (answer["channel"], answer["note"], answer["by"]) == ("email", "but later\nMaria", "mail")
    (notice,) = await until(lambda: _notices_with(school, "I come"))
    assert notice["Reply-To"] == to, "who replies to it replies to the question"
    await school.write(to, "2", message_id="<2@home.example>")
    await until(lambda: _answered(school, delivery, "no"))
    (answer,) = await _answers(school, delivery)
    assert [one["by"] for one in (answer, *answer["revisions"])] == ["mail", "mail"], "also the number of an option"
    await school.write(to, "Where do we meet?", message_id="<3@home.example>")
    if replies:
        await until(lambda: _has(school, 2))
        assert await school.words() == ["2", "Where do we meet?"], "the forged mail is a reply with a mark"
    await school.api.call("POST", f"/v1/deliveries/{delivery}/answers:close")
    await school.write(to, "I come", message_id="<4@home.example>")
    await until(lambda: _notices_with(school, "Closed. Your answer stays: I do not come"))
    worker.stop()
    await running


async def test_a_number_that_is_mailed_answers_the_question_for_one(school: School) -> None:
    worker, running = await _presses(school)
    delivery = await school.send("How many come?", None, answer={"kind": "number"})
    (mail,) = await school.mails(1)
    await school.write(str(mail["Reply-To"]), "3\n\n> How many come?")
    await until(lambda: _answered(school, delivery, "3"))
    (answer,) = await _answers(school, delivery)
    assert (answer["channel"], answer["by"]) == ("email", "mail")
    worker.stop()
    await running


async def _presses(school: School) -> tuple[Worker, "asyncio.Task[None]"]:
    """Count the answers of people."""
    presses = AnswerWorker(school.api.store, school.api.services.core.client)
    await presses.open()
    worker = presses.worker()
    return worker, asyncio.create_task(worker.run())


async def _answers(school: School, delivery: str) -> list[dict[str, Any]]:
    rows = (await school.api.call("GET", f"/v1/deliveries/{delivery}/answers")).json["recipients"]
    return [one["answer"] for one in rows]


async def _answered(school: School, delivery: str, value: str) -> bool:
    return [one.get("value") for one in await _answers(school, delivery)] == [value]


def _notices_with(school: School, text: str) -> list[EmailMessage]:
    """Return the mails with a text to which no machine answers."""
    mails = [message_from_bytes(one, policy=policy.default) for one in school.smtp.contents]
    return [one for one in mails if text in _text(one) and one["Auto-Submitted"] == "auto-replied"]


class Killed:
    """Takes a mail, and is killed before this is stored."""

    def __init__(self, replies: MailedReplies) -> None:
        self._replies, self.number = replies, 0

    async def put(self, raw: Any) -> bool:
        await self._replies.put(raw)
        self.number += 1
        raise StoreUnavailable("killed")


@needs_package("dovecot-imapd", "/usr/sbin/dovecot")
async def test_a_kill_between_the_reading_of_a_mail_and_its_mark_neither_loses_nor_doubles_it(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    core = school.api.services.core
    killed = Killed(
        MailedReplies(core.store, core.client, core.directory, school.api.services.uploads, "email", MAILBOX)
    )
    with dovecot() as server:
        for number in range(2):
            mail = a_mail(str(first["Reply-To"]), f"Words {number}", message_id=f"<{number}@home.example>")
            server.put(mail.as_bytes())
        with reading(school, server, killed):
            await until(lambda: killed.number > 0)
        with reading(school, server) as results:
            await until(lambda: len(results) == 2)
        assert results == ["repeated", "taken"]
        await until(lambda: _has(school, 2))
        assert await school.words() == ["Words 0", "Words 1"]


@needs_package("dovecot-imapd", "/usr/sbin/dovecot")
async def test_of_a_mail_that_is_too_large_the_words_are_passed_on_and_the_files_are_counted(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("couriers.email.receive.MOST_BYTES", 5000)
    await school.send()
    (first,) = await school.mails(1)
    mail = a_mail(str(first["Reply-To"]), "My film")
    mail.add_attachment(b"x" * 10_000, maintype="video", subtype="mp4", filename="film.mp4")
    with dovecot() as server, reading(school, server):
        server.put(mail.as_bytes())
        await until(lambda: _has(school, 1))
    page = (await school.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
    found = await school.api.call("GET", f"/v1/threads/{page['threads'][0]['id']}", headers=REASON)
    (message,) = found.json["messages"]
    assert (message["text"], message["files"], message["attachments"]) == ("My film", 1, [])


async def test_two_installations_of_ada_that_mail_each_other_stop_at_once(school: School) -> None:
    """The mails of one are the replies of the other: none is passed on, so none is answered."""
    core, other = school.api.services.core, "answers@other.example"
    replies = MailedReplies(core.store, core.client, core.directory, school.api.services.uploads, "email", other)
    await school.send()
    (first,) = await school.mails(1)
    token = str(first["Reply-To"]).partition("+")[2].partition("@")[0]
    of_person = a_mail(f"answers+{token}@other.example", "By hand", message_id="<2@home.example>")
    of_ada = message_from_bytes(first.as_bytes(), policy=policy.default)
    of_ada.replace_header("To", str(of_person["To"]))
    assert await replies.take(of_ada.as_bytes()) is MailResult.AUTOMATIC
    assert await replies.take(of_person.as_bytes()) is MailResult.TAKEN
    await until(school.words)
    assert await school.words() == ["By hand"]


async def test_the_words_of_a_very_long_mail_are_a_file_whose_addresses_are_asked_about(school: School) -> None:
    await school.send()
    (first,) = await school.mails(1)
    mail = a_mail(str(first["Reply-To"]), "слово " * 24_000 + "звоните +7 912 345-67-89")
    mail.add_attachment(b"logo", maintype="image", subtype="png", cid="<logo>", disposition="inline")
    assert (await post(school.api, mail)).json == {"result": "taken"}
    asked = (await school.mails(2))[1]
    assert "+7 912 345-67-89" in plain_text(asked)
    assert await school.words() == []
    await school.write(str(asked["Reply-To"]), "1", message_id="<2@home.example>")
    await until(lambda: _has(school, 1))
    page = (await school.api.call("GET", "/v1/threads?inbox=user:7", headers=REASON)).json
    newest = page["threads"][0]["newest"]
    assert (newest["text"], newest["files"], newest["small_pictures"]) == ("", 0, 1)
    (file,) = newest["attachments"]
    where = f"/v1/threads/{page['threads'][0]['id']}/messages/1/files/{file['id']}"
    found = await school.api.call("GET", where, headers=REASON)
    assert found.body.decode().endswith("слово звоните +7 912 345-67-89")


async def test_two_robots_stop_after_one_round(school: School) -> None:
    """The other robot answers each mail, and names itself nowhere."""
    await school.send()
    for number in range(1, 3):
        newest = (await school.mails(number))[-1]
        message_id = f"<{number}@robot.example>"
        taken = await school.write(str(newest["Reply-To"]), f"Ticket {number} was opened", message_id=message_id)
        assert taken.json == {"result": "taken"}
    await until(lambda: _has(school, 2))
    await school.send("The next message")
    mails = await school.mails(3)
    assert [one["Auto-Submitted"] for one in mails] == [None, "auto-replied", None]
    assert "The next message" in mails[2].as_string()


@pytest.mark.parametrize("replies", [None, "off"])
async def test_a_mail_to_which_nobody_reads_replies_has_no_such_address(school: School, replies: str | None) -> None:
    await school.send(replies=replies)
    (mail,) = await school.mails(1)
    assert mail["Reply-To"] is None


def _text(mail: EmailMessage) -> str:
    part = mail.get_body(("plain",))
    assert part
    return str(part.get_content()).replace("\r\n", "\n")


async def _outcomes(school: School) -> list[dict[str, Any]]:
    (listed,) = (await school.api.call("GET", "/v1/deliveries")).json["deliveries"]
    (person,) = (await school.api.call("GET", f"/v1/deliveries/{listed['id']}")).json["recipients"]
    return list(person["outcomes"].values())


async def _status(school: School, status: str) -> bool:
    return [one["status"] for one in await _outcomes(school)] == [status]


async def _has(school: School, number: int) -> bool:
    return len(await school.words()) >= number
