"""Uploaded files: from `./ada send --file` and the API to the recipients, byte for byte, by real couriers."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from io import BytesIO
from pathlib import Path

import pytest

from core.audit.audit import Audit
from core.errors import Conflict
from core.redis.store import Store
from core.uploads import MiB, Upload, Uploads
from couriers.sending import files
from couriers.telegram_bot import courier as telegram_bot
from delivery.http.options import Options
from sandbox.bot_api import BotApiServer
from sandbox.state import SandboxState
from tests.couriers.telegram_provider import TelegramProvider
from tests.couriers.test_email import MailProvider, last_mail
from tests.couriers.test_vk import VkProvider
from tests.delivery.conftest import Api, delivery_body
from tests.delivery.test_deliveries import finished
from tests.delivery.test_directory_commands import Ada, ada, result
from tests.support.servers import Server, several_shards
from tests.support.stack import Stack

__all__ = ["ada", "several_shards"]

CONTENT = bytes(range(256)) * 4000  # four parts, the last one short
UNKNOWN = "0" * 32


@pytest.fixture
async def telegram(server: Server, shards: int, tmp_path: Path) -> AsyncIterator[BotApiServer]:
    """The sandbox of the Bot API, and a real courier for it."""
    bot_api = BotApiServer(SandboxState())
    await bot_api.start()
    stack = await Stack.open(server, shards)
    courier = await telegram_bot.open(telegram_bot.Settings(bot_api.token, bot_api.url), tmp_path)
    await stack.courier(courier)
    yield bot_api
    await stack.end_everything()
    await stack.close()
    await courier.close()
    await bot_api.stop()


def contents(bot_api: BotApiServer) -> list[tuple[str, bytes]]:
    return [(file.name, file.content) for file in bot_api._bot.files.values()]


async def upload(api: Api, name: str = "report.pdf", content: bytes = CONTENT) -> str:
    made = await api.call("POST", f"/v1/files?name={name}", content, headers={"Content-Type": "application/pdf"})
    assert made.status == 201, made
    return str(made.json["id"])


def naming(*files: str, to: Sequence[str] = (), **more: object) -> dict[str, object]:
    """To people of the Bot API, or to one of a channel without a courier."""
    people: list[dict[str, object]] = [{"id": one, "contacts": {"telegram-bot": one}} for one in to] or [
        {"id": "1", "contacts": {"sms": "+79991112233"}}
    ]
    attachments = [{"type": "document", "file": one} for one in files]
    return delivery_body(**{"recipients": people, "content": {"attachments": attachments}, **more})


async def test_a_file_of_this_machine_arrives_byte_for_byte(
    ada: Ada, api: Api, telegram: BotApiServer, tmp_path: Path
) -> None:
    (tmp_path / "отчёт.pdf").write_bytes(CONTENT)
    (sent,) = await result(ada, "send", "--to", "1=telegram-bot:100001", "--file", str(tmp_path / "отчёт.pdf"))
    history = await finished(api, f"/v1/deliveries/{sent['id']}")
    assert history["verdict"] == "all_reached"
    assert history["content"]["attachments"][0]["name"] == "отчёт.pdf"
    assert contents(telegram) == [("отчёт.pdf", CONTENT)]
    assert [one async for one in Audit(api.store).find()] == []


async def test_an_upload_arrives_byte_for_byte_by_mail_in_vk_and_over_mtproto(
    api: Api, server: Server, shards: int, tmp_path: Path
) -> None:
    mail, vk, mtproto = MailProvider(tmp_path), VkProvider(tmp_path), TelegramProvider(tmp_path)
    stack = await Stack.open(server, shards)
    for provider in (mail, vk, mtproto):
        await provider.start()
        await stack.courier(await provider.open())
    file = await upload(api)
    people = [
        {"id": n, "contacts": {n: a}} for n, a in {"email": "a@b.org", "vk": "200001", "telegram": "100002"}.items()
    ]
    made = await api.call("POST", "/v1/deliveries", {**naming(file), "recipients": people})
    assert (await finished(api, made.headers["Location"]))["verdict"] == "all_reached"
    (attached,) = last_mail(mail).iter_attachments()
    (shown,) = mtproto.server.messages("100002")
    in_vk = (vk.server.people.shown("200001", "1") or {})["files"][0]
    assert attached.get_payload(decode=True) == CONTENT
    assert shown.file is not None
    assert shown.file.content == CONTENT
    assert vk.server.uploads.find(in_vk["attachment"]).data == CONTENT
    assert {attached.get_filename(), shown.file.name, in_vk["name"]} == {"report.pdf"}
    await stack.end_everything()
    await stack.close()
    for provider in (mail, vk, mtproto):
        await provider.close()
        await provider.stop()


async def test_one_upload_serves_many_recipients_and_leaves_nothing_on_the_disk(
    api: Api, telegram: BotApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / f"{files._PREFIX}{2**22 + 1}-x"
    abandoned.mkdir()
    file = await upload(api)
    assert await upload(api) == file
    made = await api.call("POST", "/v1/deliveries", naming(file, to=[str(n) for n in range(100_001, 100_009)]))
    assert (await finished(api, made.headers["Location"]))["verdict"] == "all_reached"
    assert contents(telegram) == [("report.pdf", CONTENT)] * 8
    left = [path for path in tmp_path.glob("ada-files-*") if path == abandoned or list(path.iterdir())]
    assert left == []


async def test_a_file_that_is_deleted_before_it_is_sent_is_named_in_the_outcome(
    api: Api, telegram: BotApiServer
) -> None:
    file = await upload(api)
    made = await api.call(
        "POST", "/v1/deliveries", naming(file, deliver_at="2030-01-01T00:00:00Z", far=True, urgent=True)
    )
    assert made.status == 202, made
    assert (await api.call("DELETE", f"/v1/files/{file}")).status == 204
    assert (await api.call("DELETE", f"/v1/files/{file}")).code == "FILE_NOT_FOUND"
    moved = await api.call(
        "PATCH", made.headers["Location"], {"deliver_at": "2029-06-01T00:00:00Z", "far": True, "urgent": True}
    )
    assert (moved.code, moved.json["detail"]) == (
        "FILE_GONE",
        "The file report.pdf was deleted or has expired; send it anew.",
    )
    assert await api.store.redis.keys("uploads:*part*") == []


async def test_a_delivery_lets_its_file_live_until_a_week_after_it_is_due(api: Api) -> None:
    file = await upload(api)
    alone = (await api.call("GET", f"/v1/files/{file}")).json
    await api.call("POST", "/v1/deliveries", naming(file, deliver_at="2030-01-01T00:00:00Z", far=True, urgent=True))
    kept = (await api.call("GET", f"/v1/files/{file}")).json
    assert kept == {**alone, "expires_at": "2030-01-08T00:00:00Z"}
    assert (kept["name"], kept["type"], kept["bytes"]) == ("report.pdf", "document", len(CONTENT))
    lifetimes = {await api.store.redis.pexpiretime(str(key)) for key in await api.store.redis.keys("uploads:*")}
    assert len(lifetimes) == 1
    await upload(api)
    assert (await api.call("GET", f"/v1/files/{file}")).json == kept


async def test_a_file_that_is_not_there_is_refused_with_its_place(api: Api) -> None:
    file = await upload(api)
    refused = await api.call("POST", "/v1/deliveries", naming(file, UNKNOWN))
    assert refused.code == "FILE_NOT_FOUND"
    assert refused.json["errors"][0]["path"] == "content.attachments.1.file"
    assert (await api.call("GET", f"/v1/files/{UNKNOWN}")).code == "FILE_NOT_FOUND"
    assert (await api.call("POST", "/v1/files?name=x.pdf", b"")).code == "FILE_EMPTY"


async def test_files_of_another_tenant_do_not_exist(api: Api) -> None:
    file = await upload(api)
    _, other = await api.services.api_keys.create("other", ["send"], "key")
    _, reader = await api.services.api_keys.create("default", ["read"], "key")
    assert (await api.as_key(other).call("POST", "/v1/deliveries", naming(file))).code == "FILE_NOT_FOUND"
    assert (await api.as_key(other).call("DELETE", f"/v1/files/{file}")).code == "FILE_NOT_FOUND"
    assert (await api.as_key(reader).call("POST", "/v1/files?name=a", b"x")).code == "SCOPE_MISSING"


class TestSmallLimit:
    @pytest.fixture
    def options(self) -> Options:
        return Options(file_limit=1000)

    async def test_what_cannot_be_uploaded_is_said_in_a_sentence(self, ada: Ada, tmp_path: Path) -> None:
        (tmp_path / "large.bin").write_bytes(bytes(1001))
        (tmp_path / "empty.bin").write_bytes(b"")
        send = "send", "--to", "1=sms:+79991112233", "--file"
        expected = {
            "large.bin": (1, "BODY_TOO_LARGE: At most 1000 bytes are allowed."),
            "empty.bin": (2, "FILE_EMPTY: The file empty.bin is empty."),
            "gone.bin": (2, "the file cannot be read: No such file or directory"),
            ".": (2, "it is a folder; --file takes one file"),
        }
        for name, (code, text) in expected.items():
            got, out, err = await ada(*send, name)
            assert (got, out) == (code, ""), err
            assert f"--file {name}: " in err
            assert text in err


async def test_the_files_of_a_tenant_have_a_limit_together(server: Server, shards: int) -> None:
    async with AsyncExitStack() as closing:
        store = await Store.open(server.url, shards)
        closing.push_async_callback(store.close)
        uploads = Uploads(store, tenant_limit=2 * MiB)
        first = await uploads.store("a", "first", BytesIO(bytes(MiB)))
        with pytest.raises(Conflict, match="take 1 of 2 MB"):
            await uploads.store("a", "second", BytesIO(bytes(MiB + 1)))
        assert isinstance(await uploads.store("b", "second", BytesIO(bytes(MiB + 1))), Upload)
        await uploads.delete("a", first.id)
        await uploads.store("a", "second", BytesIO(bytes(MiB + 1)))


async def test_an_upload_that_broke_off_is_not_there_and_the_next_one_completes_it(server: Server, shards: int) -> None:
    store = await Store.open(server.url, shards)
    uploads = Uploads(store)
    whole = await uploads.store("a", "x.pdf", BytesIO(CONTENT))
    await store.command("DEL", store.tenant_key("uploadpart", "a", whole.id, "2"))
    assert await uploads.keep("a", [whole.id]) == [None]
    assert await uploads.store("a", "x.pdf", BytesIO(CONTENT)) is not None
    read = BytesIO()
    assert await uploads.load("a", whole.id, read)
    assert read.getvalue() == CONTENT
    await store.close()
