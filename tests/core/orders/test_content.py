"""The limits of content hold for every way in, and each refusal has a code and leaves no trace."""

import pytest

from core.errors import Invalid
from core.model.content import Attachment, AttachmentType, Button, Content, ParseMode
from core.orders.check import MAX_ATTACHMENTS, MAX_BUTTONS, MAX_SIZE
from tests.core.orders.conftest import Office

LINK = Attachment(AttachmentType.PHOTO, url="https://example.org/a.png")
OK = Button("Да", "yes")


@pytest.mark.parametrize(
    ("content", "code", "path"),
    [
        (Content(inline=((OK,) * MAX_BUTTONS, (OK,))), "TOO_MANY_BUTTONS", "content.inline"),
        (Content(reply=(("x",) * 101,)), "TOO_MANY_BUTTONS", "content.reply"),
        (Content(inline=((Button("", "yes"),),)), "BUTTON_MALFORMED", "content.inline"),
        (Content(inline=((Button("x"),),)), "BUTTON_MALFORMED", "content.inline"),
        (Content(inline=((Button("x", "yes", "https://example.org"),),)), "BUTTON_MALFORMED", "content.inline"),
        (Content(reply=(("x", " "),)), "BUTTON_MALFORMED", "content.reply"),
        (Content(attachments=(LINK,) * (MAX_ATTACHMENTS + 1)), "TOO_MANY_ATTACHMENTS", "content.attachments"),
        (Content(attachments=(LINK, Attachment(LINK.type))), "ATTACHMENT_MALFORMED", "content.attachments.1"),
        (Content(attachments=(Attachment(LINK.type, "a.png"),)), "ATTACHMENT_MALFORMED", "content.attachments.0"),
        (Content(attachments=(Attachment(LINK.type, "/a", "https://x"),)), "ATTACHMENT_MALFORMED", None),
        (Content(inline=((Button("x", "я" * MAX_SIZE),),)), "CONTENT_TOO_LARGE", "content"),
    ],
)
async def test_content_beyond_the_limits_is_refused(
    office: Office, content: Content, code: str, path: str | None
) -> None:
    with pytest.raises(Invalid) as refusal:
        await office.send(content=content)
    assert refusal.value.code == code
    assert path in (None, refusal.value.path)


@pytest.mark.parametrize("content", [Content(), Content(reply=()), Content(inline=((OK,),)), Content(remove="5")])
async def test_a_text_is_empty_only_with_attachments(office: Office, content: Content) -> None:
    with pytest.raises(Invalid, match="shows at least one character"):
        await office.send(content=content, text=" ")
    await office.send(content=Content(attachments=(LINK,)), text="")


async def test_an_edit_of_the_buttons_needs_no_text(office: Office) -> None:
    accepted = await office.send(content=Content(edit="5", inline=((OK,),)), text="")
    history = await office.stack.deliveries.read(accepted.key, "university")
    assert history.content == Content(edit="5", inline=[[OK]])


async def test_a_broken_mark_is_refused_with_its_place_and_leaves_no_trace(office: Office) -> None:
    before = await office.stack.redis.keys("*")
    with pytest.raises(Invalid, match="as HTML: character 6: <b> is never closed") as refusal:
        await office.send(content=Content(ParseMode.HTML), text="Пары <b>не будет")
    assert (refusal.value.code, refusal.value.path) == ("MARKS_BROKEN", "text")
    assert await office.stack.redis.keys("*") == before
    await office.send(content=Content(), text="Пары <b>не будет")
    await office.send(content=Content(ParseMode.HTML), text="Пары <b>не</b> будет")
