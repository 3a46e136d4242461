"""What a mail says: its new words, its files, and whether a machine has written it."""

from email.message import EmailMessage

import pytest

from core.errors import Invalid
from core.model.content import AttachmentType
from core.threads.mail_reading import new_words, read_mail

OUTLOOK = """А в пятницу?

С уважением,
Мария

________________________________
От: School <reply+abc@school.example>
Отправлено: 27 ноября 2026 г. 12:00
Кому: Мария <maria@home.example>
Тема: Завтра пары не будет

Завтра пары не будет
"""
OUTLOOK_EN = """And on Friday?

Get Outlook for iOS<https://aka.ms/o0ukef>

From: School <reply+abc@school.example>
Sent: Friday, November 27, 2026 12:00 PM
To: maria@home.example
Subject: No classes

No classes
"""
GMAIL = """А в пятницу?

пт, 27 нояб. 2026 г. в 12:00, School <reply+abc@school.example>:

> Завтра пары не будет
>
> --
> Какие сообщения вам приходят и как отписаться: https://ada.example/p/x
"""
GMAIL_EN = """And on Friday?

On Fri, Nov 27, 2026 at 12:00 PM The University School of Mathematics
<reply+abc@school.example> wrote:

> No classes
"""
MAIL_RU = """А в пятницу?

--
Мария Иванова
+7 999 123-45-67
Отправлено из Почты Mail
\u00a0
>Пятница, 27 ноября 2026, 12:00 +03:00 от School <reply+abc@school.example>:
>\u00a0
>Завтра пары не будет
"""
MAIL_RU_TOP = """А в пятницу?

Пятница, 27 ноября 2026, 12:00 +03:00 от School <reply+abc@school.example>:

>Завтра пары не будет
"""
YANDEX = """А в пятницу?

27.11.2026, 12:00, "School" <reply+abc@school.example>:

> Завтра пары не будет

--
Отправлено из мобильного приложения Яндекс Почты
"""


@pytest.mark.parametrize(
    ("mail", "words"),
    [
        (OUTLOOK, "А в пятницу?\n\nС уважением,\nМария"),
        (OUTLOOK_EN, "And on Friday?"),
        (GMAIL, "А в пятницу?"),
        (GMAIL_EN, "And on Friday?"),
        (MAIL_RU, "А в пятницу?"),
        (MAIL_RU_TOP, "А в пятницу?"),
        (YANDEX, "А в пятницу?"),
        ("> Завтра пары не будет\n\nА в пятницу?\n", "А в пятницу?"),
        ("В понедельник Петя писал:\nпары будут в 12:00", "В понедельник Петя писал:\nпары будут в 12:00"),
        ("27.11 в 12:00 я не могу: болею", "27.11 в 12:00 я не могу: болею"),
        ("От: меня\nвам привет", "От: меня\nвам привет"),
    ],
    ids=["outlook", "outlook-en", "gmail", "gmail-en", "mail.ru", "mail.ru-top", "yandex", "below", *"abc"],
)
def test_only_the_new_words_of_a_mail_are_read(mail: str, words: str) -> None:
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
    "page",
    [
        '<div dir="ltr">А в пятницу?</div><br><div class="gmail_quote gmail_quote_container"><div>пт, 27 нояб.</div>'
        "<blockquote>Завтра пары не будет<br></blockquote></div>",
        "<html><head><style>p {}</style></head><body><p>А в&nbsp;пятницу?</p><div id='appendonsend'></div>"
        "<hr><div id='divRplyFwdMsg'><b>От:</b> School &lt;reply+abc@school.example&gt;</div></body></html>",
        "<div>А в пятницу?</div><div>27.11.2026, 12:00, &quot;School&quot; &lt;r@school.example&gt;:</div>"
        "<blockquote><p>Завтра пары не будет</p><p></blockquote>",
    ],
    ids=["gmail", "outlook", "yandex"],
)
def test_a_mail_without_a_plain_text_is_read_from_its_page(page: str) -> None:
    mail = a_mail()
    mail.set_content(page, subtype="html")
    assert read_mail(mail.as_bytes()).text == "А в пятницу?"


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
    ],
    ids=str,
)
def test_a_mail_of_a_machine_is_recognised(headers: dict[str, str]) -> None:
    assert read_mail(a_mail(**headers).as_bytes()).is_automatic


def test_a_mail_of_a_person_is_no_mail_of_a_machine() -> None:
    headers = {"Auto_Submitted": "no", "Return_Path": "<maria@home.example>", "Subject": "Re: Automatic door"}
    assert not read_mail(a_mail(**headers).as_bytes()).is_automatic
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
    files = read_mail(mail.as_bytes()).files
    assert [(one.type, one.name, one.data[:4]) for one in files] == [
        (AttachmentType.DOCUMENT, "работа.pdf", b"%PDF"),
        (AttachmentType.PHOTO, "", b"xxxx"),
    ]


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
