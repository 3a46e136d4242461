"""What a key can make a bot do by handing in events in a person's name: never more than the key itself may (I21).

Anna (100001) administers the installation and the bot. The real API, scenarios and courier; Telegram is the sandbox.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.jobs import JobId, Jobs
from core.jobs.schedule import Schedule
from core.model.people import User
from core.redis.store import Store
from core.updates.rights import API
from sandbox.sandbox import Sandbox
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.api_client import KEY
from tests.system.crash.installation import Installation

WITHIN = 60.0
ANNA, BORIS = "100001", "100002"
TENANT = "default"
HANDED_IN = {"channel": "telegram-bot", "user_id": ANNA, "chat_id": ANNA, "username": "boris"}

ACTIONS = {
    "reply": "{type: send, text: Hello}",
    "role": "{type: send, text: secret, required_role: admin}",
    "permission": "{type: send, text: secret, required_permission: everything}",
    "group": "{type: send, text: secret, group_admin: true}",
    "member": "{type: validator, rules: {user_id: {rule: is_member, value: '@club'}}}",
    "stopjob": "{type: job, operation: stop, kind: digest, user: '2'}",
    "alljobs": "{type: job, operation: list}",
    "pausejob": "{type: job, operation: pause, kind: digest}",
    "myjob": "{type: job, operation: status, kind: digest}",
    "broadcast": "{type: send, text: In her name, to: {id: 2}, channels: telegram-bot}",
    "replace": "{type: send, text: x, remove_message_id: 1}",
    "delete": "{type: remove, remove_message_id: 1}",
    "uncancel": "{type: cancel, tag: lesson}",
    "mute": "{type: restrict, restrict_user_id: 100002, chat_id: -1000000000123}",
    "invite": "{type: invite_link, chat_id: -1000000000123}",
    "file": "{type: send, attachment: '{attachments}', placeholder: true}",
}
"""Command → what it does."""

SCOPE_OF = {
    "role": "admin", "permission": "admin", "group": "admin", "member": "admin", "stopjob": "manage",
    "alljobs": "read", "pausejob": "manage", "myjob": "read", "broadcast": "send", "replace": "send",
    "delete": "send", "uncancel": "send", "mute": "manage", "invite": "manage",
}  # fmt: skip


@dataclass
class Claimant:
    """Hands in events with keys of its own, and reads what became of them."""

    session: ClientSession
    url: str
    store: Store

    async def key(self, *scopes: str) -> str:
        _, secret = await ApiKeys(self.store).create("claimant", scopes, TENANT)
        return secret

    async def call(self, secret: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {secret}"}
        async with self.session.request(method, self.url + path, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def hand_in(self, secret: str, command: str, **more: Any) -> dict[str, Any]:
        """Hands in a command in Anna's name; returns the only action of the run that it started."""
        status, accepted = await self.call(secret, "POST", "/v1/updates", {**HANDED_IN, "event_text": command, **more})
        assert status == 202, accepted
        ended = await until(lambda: self._ended(accepted["id"]), within=WITHIN)
        assert ended is not None
        return dict(ended)

    async def _ended(self, event: str) -> dict[str, Any] | None:
        _, page = await self.call(KEY, "GET", f"/v1/runs?person=telegram-bot:{ANNA}&state=over")
        runs = [(await self.call(KEY, "GET", f"/v1/runs/{run['id']}"))[1] for run in page["runs"]]
        return next(({**run["actions"][0], "event": run["event"]} for run in runs if run["event"]["id"] == event), None)


@pytest.fixture
async def claimant(own_server: Server, tmp_path: Path) -> AsyncIterator[Claimant]:
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    opened = await Installation.open(own_server, sandbox, tmp_path)
    settings = {"ADA_API_KEY": KEY, "ADA_SCENARIOS": str(write_bot(tmp_path / "bot")), "ADA_QUIET_HOURS": "off"}
    started = [opened.start(*words, **settings) for words in (("serve",), ("scenarios",), ("courier", "telegram-bot"))]
    url = (await started[0].ready())["http"]
    await asyncio.gather(*(process.ready() for process in started[1:]))
    store = opened.core.store
    await create_people(store)
    async with ClientSession() as session:
        yield Claimant(session, url, store)
    await opened.close()
    await sandbox.stop()


async def create_people(store: Store) -> None:
    """Anna and Boris, each with a job."""
    directory, jobs = Directory(store), Jobs(store)
    await directory.users.create(TENANT, User(1, "Anna", role="admin", contacts={"telegram-bot": [ANNA]}))
    await directory.users.create(TENANT, User(2, "Boris", contacts={"telegram-bot": [BORIS]}))
    await jobs.kinds.publish({"digest": Schedule(timedelta(hours=1))})
    for user in ("1", "2"):
        await jobs.start(JobId(TENANT, "digest", user), {}, "UTC")


def write_bot(folder: Path) -> Path:
    (folder / "scenarios").mkdir(parents=True)
    commands = ", ".join(f'"/{name}": s.{name}' for name in ACTIONS)
    (folder / "triggers.yaml").write_text(f"text: {{exact: {{{commands}}}}}")
    (folder / "scenarios" / "s.yaml").write_text(
        "\n".join(f"{name}:\n  actions:\n    - {action}" for name, action in ACTIONS.items())
    )
    (folder / "bot.yaml").write_text(f"roles: {{owner: {{users: [{ANNA}], permissions: [everything]}}}}")
    return folder


async def outcomes(claimant: Claimant, secret: str, commands: Sequence[str]) -> dict[str, str]:
    """Command → the scope that the key lacked, "" if the action was not refused for that."""
    ended = [await claimant.hand_in(secret, f"/{command}") for command in commands]
    return {command: missing_scope(action) for command, action in zip(commands, ended, strict=True)}


def missing_scope(action: dict[str, Any]) -> str:
    _, found, scope = action["error"].partition("lacks the scope ")
    return scope if found else ""


async def test_a_key_that_only_hands_in_events_acts_for_nobody_in_particular(claimant: Claimant) -> None:
    secret = await claimant.key("updates")
    assert await outcomes(claimant, secret, list(SCOPE_OF)) == SCOPE_OF
    reply = await claimant.hand_in(secret, "/reply")
    assert (reply["state"], reply["error"]) == ("completed", "")
    status, delivery = await claimant.call(KEY, "GET", f"/v1/deliveries/{reply['results']['delivery_id']}")
    assert (status, delivery["origin"]) == (200, API)
    assert (reply["event"]["origin"], reply["event"]["key_scopes"]) == (API, ["updates"])
    jobs = (await claimant.call(KEY, "GET", "/v1/jobs"))[1]["jobs"]
    assert [job["state"] for job in jobs] == ["running", "running"]
    people = await claimant.store.redis.keys("*username*")
    assert people == [], "no person got Boris's @name"


async def test_a_key_with_a_scope_gets_as_far_as_the_scope(claimant: Claimant) -> None:
    may_send = await claimant.key("updates", "send")
    missing = await outcomes(claimant, may_send, list(SCOPE_OF))
    assert missing == {name: "" if scope == "send" else scope for name, scope in SCOPE_OF.items()}
    may_manage = await claimant.key("updates", "manage", "read")
    missing = await outcomes(claimant, may_manage, ["role", "stopjob", "alljobs", "pausejob", "myjob", "broadcast"])
    assert missing == {"role": "admin", "stopjob": "", "alljobs": "", "pausejob": "", "myjob": "", "broadcast": "send"}
    stop = await claimant.hand_in(may_manage, "/stopjob")
    assert (stop["state"], stop["results"]["job_refusal"]) == ("failed", "ADMIN_NEEDED")
    may_all = await claimant.key("updates", "admin")
    assert (await claimant.hand_in(may_all, "/role"))["state"] == "completed"
    assert (await claimant.hand_in(may_all, "/stopjob"))["state"] == "completed"


async def test_a_file_id_of_an_event_is_never_a_file_of_the_bot(claimant: Claimant) -> None:
    secret = await claimant.key("updates")
    sent = await claimant.hand_in(secret, "/file", attachments=[{"type": "document", "file_id": "bot.yaml"}])
    assert sent["state"] == "failed", "Telegram has no file with this id"
