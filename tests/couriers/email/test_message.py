"""Messages on the wire: read back with the standard library, letter for letter; headers cannot be injected."""

from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import SMTPUTF8

import pytest
from hypothesis import given
from hypothesis import strategies as st

from couriers.email import Invalid, MailMessage, checked_address, html_of
from couriers.email.message import EncodedMail, encode

SENDER = "Ада <ada@example.org>"
LINE_BREAKS = ["\r\n", "\n", "\r", "\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]


def parsed(encoded: EncodedMail) -> EmailMessage:
    return message_from_bytes(encoded.content, policy=SMTPUTF8)


def read(message: MailMessage) -> EmailMessage:
    return parsed(encode(message, SENDER))


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content())


# headers

letters = st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])


@given(subject=st.text(letters, max_size=200))
def test_a_subject_in_any_letters_survives(subject: str) -> None:
    assert read(MailMessage("anna@example.org", subject, "text"))["Subject"] == subject.strip(" ")


@pytest.mark.parametrize(
    "subject",
    [
        "Моей пары сегодня не будет: «Сети», ауд. 42, вместо неё лекция в корпусе на Ленинском проспекте 🙂",
        "x" * 200,
        "я" * 200,
        "=?utf-8?q?not_encoded?=",
        "two  spaces,  three   spaces, два  пробела,  три   пробела",
        "👩‍👩‍👧‍👦" * 20,
        "a" * 70 + " я",
        "я" * 2000,
    ],
)
def test_unusual_subjects_survive(subject: str) -> None:
    encoded = encode(MailMessage("anna@example.org", subject, "text"), SENDER)
    assert parsed(encoded)["Subject"] == subject
    assert encoded.content.isascii()
    assert max(map(len, encoded.content.split(b"\r\n"))) <= 998


def test_the_headers_of_a_mail() -> None:
    headers = {"List-Unsubscribe": f"<https://example.org/{'long/' * 30}>"}
    mail = read(MailMessage("anna@example.org", "s", "t", headers=headers, message_id="0af3"))
    assert mail["From"] == SENDER
    assert mail["To"] == "anna@example.org"
    assert mail["Message-ID"] == "<0af3@example.org>"
    assert mail["MIME-Version"] == "1.0"
    assert mail["Date"].datetime.tzinfo is not None
    assert mail["List-Unsubscribe"] == headers["List-Unsubscribe"]
    raw = encode(MailMessage("anna@example.org", "s", "t", headers=headers), SENDER).content
    assert f"\r\nList-Unsubscribe: {headers['List-Unsubscribe']}\r\n".encode() in raw, "mail programs decode no URL"


def test_bounces_may_go_to_an_address_of_the_mail() -> None:
    encoded = encode(MailMessage("anna@example.org", "s", "t", bounce_to="reply+x@school.example"), SENDER)
    assert encoded.sender == "reply+x@school.example"
    assert parsed(encoded)["From"] == SENDER
    assert encoded.message_id.endswith("@example.org")


def test_without_an_id_each_mail_has_another_one() -> None:
    message = MailMessage("anna@example.org", "s", "t")
    first, second = (encode(message, SENDER).message_id for _ in range(2))
    assert first != second
    assert first.endswith("@example.org")


@pytest.mark.parametrize("line_break", LINE_BREAKS)
def test_no_line_break_in_a_header_is_accepted(line_break: str) -> None:
    """A line break would let a caller add headers, such as Bcc."""
    injected = f"x{line_break}Bcc: eve@example.org"
    for wrong in (
        {"to": f"anna@example.org{line_break}Bcc: eve@example.org"},
        {"to": f"anna{line_break}@example.org"},
        {"subject": injected},
        {"sender": f"Ada {injected} <ada@example.org>"},
        {"headers": {"List-Unsubscribe": injected}},
        {"message_id": injected},
    ):
        with pytest.raises(Invalid) as refused:
            MailMessage(**{"to": "anna@example.org", "subject": "s", "text": "t", **wrong})  # type: ignore[arg-type]
        assert refused.value.code in ("LINE_BREAK", "EMAIL_MALFORMED")


@pytest.mark.parametrize("name", ["Bcc: x\r\nTo", "Sub ject", "", "To", "SUBJECT", "from", "Ключ"])
def test_only_further_headers_can_be_given(name: str) -> None:
    with pytest.raises(Invalid, match="header"):
        MailMessage("anna@example.org", "s", "t", headers={name: "x"})


@pytest.mark.parametrize(
    "name",
    ["Деканат", "Деканат факультета прикладной математики и процессов управления, отдел по работе со студентами № 3"],
)
def test_the_name_of_the_sender_survives(name: str) -> None:
    encoded = encode(MailMessage("anna@example.org", "s", "t", sender=f'"{name}" <dean@example.org>'), SENDER)
    raw = message_from_bytes(encoded.content)[
        "From"
    ]  # the newer policy reads encoded names with spaces between the words
    assert str(make_header(decode_header(raw))) == f"{name} <dean@example.org>"
    assert parsed(encoded)["From"].addresses[0].addr_spec == "dean@example.org"
    assert encoded.content.isascii()


# addresses


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("anna@example.org", "anna@example.org"),
        (" anna.b+c_d@Example.org ", "anna.b+c_d@Example.org"),
        ("anna@почта.рф", "anna@xn--80a1acny.xn--p1ai"),
        ("анна@почта.рф", "анна@xn--80a1acny.xn--p1ai"),
        ("a'b/c=d!#$%&*?^`{|}~@x.org", "a'b/c=d!#$%&*?^`{|}~@x.org"),
        ("root@localhost", "root@localhost"),
    ],
)
def test_an_address_is_accepted_and_its_domain_is_ascii(written: str, address: str) -> None:
    assert checked_address(written) == address


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "anna",
            "@example.org",
            "anna@",
            "a b@example.org",
            "<anna@example.org>",
            "anna@example.org>",
            '"a"@b.org',
        ),
        *(
            "anna@exa mple.org",
            "anna@example..org",
            "anna@-example.org",
            "anna@example.org.",
            "a,b@c.org",
            "a@b,c@d.org",
        ),
        *("anna@example.org SIZE=1", f"{'a' * 65}@b.org", f"a@{'b' * 64}.org", f"a@{'b.' * 130}org", "a\u200b@b.org"),
        *("a\ud800@b.org", "anna@[127.0.0.1]", "a(comment)@b.org", "a:b@c.org", "anna@пример..рф", f"a@{'я' * 64}.рф"),
    ],
)
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(Invalid) as refused:
        checked_address(written)
    assert refused.value.code == "EMAIL_MALFORMED"


def test_an_address_with_other_letters_before_the_at_needs_smtputf8() -> None:
    plain = encode(MailMessage("anna@почта.рф", "Тема", "t"), SENDER)
    assert (plain.needs_utf8, plain.recipient) == (False, "anna@xn--80a1acny.xn--p1ai")
    other = encode(MailMessage("анна@почта.рф", "Тема", "t"), SENDER)
    assert (other.needs_utf8, other.recipient) == (True, "анна@xn--80a1acny.xn--p1ai")
    assert (parsed(other)["To"], parsed(other)["Subject"]) == ("анна@xn--80a1acny.xn--p1ai", "Тема")


# texts


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=4096))
def test_a_text_in_any_letters_survives_in_both_parts(text: str) -> None:
    mail = read(MailMessage("anna@example.org", "s", text, html=f"<p>{text}"))
    assert text_of(mail).replace("\r\n", "\n") == text
    assert text_of(mail, "html").replace("\r\n", "\n") == f"<p>{text}"


def test_an_ascii_text_is_readable_on_the_wire() -> None:
    encoded = encode(MailMessage("anna@example.org", "s", "Your code is 123.\n.\nFrom Ada"), SENDER)
    assert b"\r\n\r\nYour code is 123.\r\n.\r\nFrom Ada" in encoded.content


def test_the_preferred_part_is_html() -> None:
    mail = read(MailMessage("anna@example.org", "s", "text", html="<b>text</b>"))
    assert mail.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]


# HTML


def test_markup_is_escaped_and_links_can_be_clicked() -> None:
    page = html_of('<b>"A" & B</b>\n  see https://example.org/?a=1&b="2". (http://x.org/y_(z))')
    assert "&lt;b&gt;&quot;A&quot; &amp; B&lt;/b&gt;<br>\n &nbsp;see " in page
    assert '<a href="https://example.org/?a=1&amp;b=">https://example.org/?a=1&amp;b=</a>&quot;2&quot;. (' in page
    assert '<a href="http://x.org/y_(z">http://x.org/y_(z</a>))' in page


@pytest.mark.parametrize("text", ["javascript:alert(1)", "https:// x", "<script>alert(1)</script>", "data:text/html,x"])
def test_only_web_addresses_become_links(text: str) -> None:
    assert "<a " not in html_of(text)
    assert "<script" not in html_of(text)
