"""What a mail says: its new words, its files, and whether a machine has written it."""

from base64 import b64encode
from email.message import EmailMessage
from pathlib import Path

import pytest

from core.errors import Invalid
from core.model.content import AttachmentType
from core.threads.mail_reading import new_words, read_mail

MAILS = Path(__file__).parent / "mails"
"""Replies in the form in which mail programs write them: PROGRAM-LANGUAGE.eml."""
WORDS = {"ru": "А в пятницу?", "en": "And on Friday?"}


@pytest.mark.parametrize("name", sorted(one.stem for one in MAILS.glob("*.eml")))
def test_of_the_reply_of_each_mail_program_only_the_new_words_are_read(name: str) -> None:
    raw = (MAILS / f"{name}.eml").read_bytes()
    for copy in (raw, raw.replace(b"\n", b"\r\n")):
        mail = read_mail(copy)
        assert (mail.text, mail.is_automatic, mail.files) == (WORDS[name[-2:]], False, ())


@pytest.mark.parametrize(
    ("mail", "words"),
    [
        ("> Завтра пары не будет\n\nА в пятницу?\n", "А в пятницу?"),
        ("В понедельник Петя писал:\nпары будут в 12:00", "В понедельник Петя писал:\nпары будут в 12:00"),
        ("27.11 в 12:00 я не могу: болею", "27.11 в 12:00 я не могу: болею"),
        ("От: меня\nвам привет", "От: меня\nвам привет"),
        ("Hello\n\nBegin forwarded message:\n\nFrom: M <m@home.example>\n", "Hello"),
        ("Привет\n\nНачало переадресованного сообщения:\n\nОт: M <m@home.example>\n", "Привет"),
        (
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nHello\n"
            "-----BEGIN PGP SIGNATURE-----\nComment: m@home.example\n\nabc\n-----END PGP SIGNATURE-----\n",
            "Hello",
        ),
    ],
)
def test_words_that_look_like_a_quote_stay_and_quotes_go(mail: str, words: str) -> None:
    assert new_words(mail) == words
    assert new_words(mail.replace("\n", "\r\n")) == words


def a_mail(text: str = "Hello", **headers: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Message-ID"] = "Maria <maria@home.example>", "reply+x@school.example", "<1@home>"
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied (vacation)"},
        {"Precedence": "Bulk"},
        {"Precedence": "auto_reply"},
        {"Return_Path": "<>"},
        {"X_Autoreply": "yes"},
        {"List_Id": "<parents.school.example>"},
        {"Subject": "Автоответ: Завтра пары не будет"},
        {"Subject": "Automatic reply: No classes"},
        {"Subject": "Я в отпуске до 7 декабря"},
        {"X_Auto_Response_Suppress": "All"},
    ],
    ids=str,
)
def test_a_mail_of_a_machine_is_recognised(headers: dict[str, str]) -> None:
    assert read_mail(a_mail(**headers).as_bytes()).is_automatic


def test_a_mail_of_a_person_is_no_mail_of_a_machine() -> None:
    headers = {"Auto_Submitted": "no", "Return_Path": "<maria@home.example>", "Subject": "Re: Automatic door"}
    assert not read_mail(a_mail(**headers).as_bytes()).is_automatic
    assert read_mail(b"From: No Reply <no-reply@bank.example>\r\n\r\nHello").is_automatic
    bounced = b"Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nlost\r\n--b--"
    assert read_mail(bounced).is_automatic


@pytest.mark.parametrize(
    ("results", "is_forged"),
    [
        ([], False),
        (["mx.school.example; dmarc=pass"], False),
        (["mx.school.example; spf=pass", "mx.school.example; dmarc=fail (p=none)"], True),
        (["mx.school.example; dmarc=pass", "relay.example; dmarc=fail"], False),
    ],
    ids=["none", "pass", "of-two-filters", "of-another-server"],
)
def test_only_what_the_own_server_has_checked_is_believed(results: list[str], is_forged: bool) -> None:
    headers = "".join(f"Authentication-Results: {one}\r\n" for one in results)
    assert read_mail(f"{headers}From: a@b.example\r\n\r\nHello".encode()).is_forged == is_forged


def test_files_are_read_and_the_small_pictures_of_signatures_are_not() -> None:
    mail = a_mail()
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="работа.pdf")
    mail.add_attachment(b"logo", maintype="image", subtype="png", cid="<logo>", disposition="inline")
    mail.add_attachment(b"x" * 30_000, maintype="image", subtype="jpeg", cid="<photo>", disposition="inline")
    read = read_mail(mail.as_bytes())
    assert [(one.type, one.name, one.data[:4]) for one in read.files] == [
        (AttachmentType.DOCUMENT, "работа.pdf", b"%PDF"),
        (AttachmentType.PHOTO, "", b"xxxx"),
    ]
    assert read.small_pictures == 1


def test_what_is_cut_off_from_a_very_long_mail_counts_as_a_file_and_a_long_quote_does_not() -> None:
    long, quoting = a_mail(), a_mail()
    long.set_content("words " * 40_000)
    quoting.set_content("Hello\n" + "> words\n" * 40_000)
    assert [(one.name, one.data) for one in read_mail(long.as_bytes()).files] == [("", b"")]
    assert (read_mail(quoting.as_bytes()).text, read_mail(quoting.as_bytes()).files) == ("Hello", ())


@pytest.mark.parametrize(
    "page",
    [
        "<div id='Signature'>{}</div>",
        "<div><div class='gmail_signature' dir='ltr'>{}</div></div>",
        "<pre class='moz-signature' cols='72'>{}</pre>",
        "<div style='color: red; display:none'>{}</div>",
        "<p hidden>{}</p>",
        "<!-- {} --><a href='mailto:{}'></a>",
    ],
)
def test_of_a_page_neither_hidden_words_nor_signatures_are_passed_on(page: str) -> None:
    mail = a_mail()
    mail.set_content(f"<p>Hello</p>{page.replace('{}', 'maria@home.example')}<p>Bye</p>", subtype="html")
    assert read_mail(mail.as_bytes()).text.split() == ["Hello", "Bye"]


def test_what_a_mail_program_adds_about_its_owner_is_no_file() -> None:
    mail = a_mail()
    for subtype in ("pkcs7-signature", "x-pkcs7-signature", "pgp-signature", "pgp-keys"):
        mail.add_attachment(b"maria@home.example", maintype="application", subtype=subtype, filename="s.p7s")
    mail.add_attachment(b"maria@home.example", maintype="application", subtype="ms-tnef", filename="winmail.dat")
    mail.add_attachment(b"maria@home.example", maintype="application", subtype="octet-stream", filename="winmail.dat")
    assert [(one.name, one.data) for one in read_mail(mail.as_bytes()).files] == [("winmail.dat", b"")] * 2


def test_an_attached_mail_is_counted_and_nothing_in_it_is_passed_on() -> None:
    inner = a_mail("secret words", Subject="About Masha")
    inner.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="inner.pdf")
    for is_within in (False, True):
        mail = a_mail()
        if is_within:
            mail.add_attachment(inner, cid="<a>", disposition="inline")
        else:
            mail.add_attachment(inner)
        read = read_mail(mail.as_bytes())
        assert (read.text, [one.data for one in read.files]) == ("Hello", [b""])


def test_the_words_below_a_picture_and_each_file_beside_them_are_read() -> None:
    parts = [
        ("text/plain", "first"),
        ("image/png\nContent-Disposition: inline; filename=a.png", "dots"),
        ("text/plain", "second\n\n> quoted"),
        ("text/csv", "1;2"),
        ("text/html", "<p>third</p>"),
        ("text/plain\nContent-Disposition: attachment; filename=a.txt", "fourth"),
        ("application/pdf\nContent-ID: <a>", "%PDF"),
        ("application/pkcs7-mime", "maria@home.example"),
    ]
    body = "".join(f"--b\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    read = read_mail(f"From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n{body}--b--\n".encode())
    assert read.text.split() == ["first", "second", "third"]
    assert [one.data for one in read.files] == [b"dots", b"1;2", b"fourth", b"%PDF", b""]


def test_a_picture_that_stands_in_the_page_itself_is_a_file() -> None:
    mail, dots = a_mail(), b64encode(bytes(30_000)).decode()
    picture, small = f"<img src='data:image/png;base64,{dots}'>", "<img src='data:image/png;base64,AAAA'>"
    page = f"<p>Hello</p>{picture}{small}<img src='data:image/png;base64,AAA'><blockquote>{picture}</blockquote>"
    mail.add_alternative(page, subtype="html")
    assert [(one.type, one.data) for one in read_mail(mail.as_bytes()).files] == [(AttachmentType.PHOTO, bytes(30_000))]


def test_a_copy_of_a_mail_has_its_name_also_without_a_message_id() -> None:
    first, other = a_mail(), a_mail()
    other["Received"] = "from elsewhere"
    assert read_mail(first.as_bytes()).name == read_mail(other.as_bytes()).name
    for one in (first, other):
        del one["Message-ID"]
    assert read_mail(first.as_bytes()).name != read_mail(other.as_bytes()).name


@pytest.mark.parametrize(
    "raw", [b"", b"\0", b"From: <<>>\r\nTo: ,,,\r\nContent-Type: text/plain; charset=x\r\n\r\n\xff"]
)
def test_what_is_no_mail_is_read_as_one_without_an_author(raw: bytes) -> None:
    mail = read_mail(raw)
    assert (mail.authors, mail.recipients, mail.files) == ((), (), ())


@pytest.mark.parametrize("raw", [b"To: :;'a?=\r\n\r\ntext", b"From: @\\\r\nFrom: <%@[ \r\n\r\ntext"])
def test_broken_headers_on_which_the_library_fails_are_refused(raw: bytes) -> None:
    with pytest.raises(Invalid) as refused:
        read_mail(raw)
    assert refused.value.code == "MAIL_MALFORMED"
