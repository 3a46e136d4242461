"""The courier of VK is killed between the steps of a message with a photo, and another courier sends it once."""

from pathlib import Path

import pytest

from core.model.states import Status
from couriers.sending import Attachment, AttachmentType, Content
from tests.couriers.file_server import PICTURE
from tests.support.waiting import until
from tests.system.crash.installation import VK, Installation, person


@pytest.mark.parametrize("method", ["photos.getMessagesUploadServer", "photos.saveMessagesPhoto", "execute"])
async def test_killed_before_the_response_to_a_step_the_message_is_received_once_with_its_photo(
    installation: Installation, tmp_path: Path, method: str
) -> None:
    (tmp_path / "menu.png").write_bytes(PICTURE)
    content = Content(attachments=[Attachment(AttachmentType.PHOTO, path=str(tmp_path / "menu.png"))])
    link, settings = await installation.link_to(VK)
    courier = await installation.courier(VK, **settings)
    link.block_replies(trigger=f"/method/{method}".encode())
    accepted = await installation.deliver(person(1, VK), content=content)
    await until(lambda: installation.state.counter("vk", method))
    courier.kill()
    link.cut()
    await installation.courier(VK)
    assert await installation.finished(accepted) == {("vk", Status.SENT): 1}
    (received,) = installation.state.inbox("vk")
    shown = installation.sandbox.vk.people.shown(received.address, received.reference)
    assert shown
    assert [file["name"] for file in shown["files"]] == ["menu.png"]
    await installation.audit()
