"""`./ada up` and the verbs used beside it, as a user runs them: real processes, real ports, real kills."""

import json
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import pytest
from aiohttp import ClientSession
from redis import Redis
from redis.exceptions import ConnectionError as Unreachable

from cli.processes.embedded_valkey import ENVIRONMENT, running_url
from tests.cli.installation import Installation, have_ended, new_installation
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.waiting import await_sync
from tests.system.crash.process import AdaProcess
from tests.system.guides.blocks import commands_run_by

PEOPLE = ["--to", "1=telegram:100001,vk:200001,sms:+79990000001", "--to", "2=vk:200002"]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    yield from new_installation(tmp_path)


def test_demo_delivers_over_every_channel_and_plays_its_story_in_the_language_of_the_terminal(
    installation: Installation,
) -> None:
    """It fails unless every text arrived once. The table has one line for each person."""
    installation.environment["LC_ALL"] = "ru_RU.UTF-8"
    done = installation.ada("demo")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Здравствуйте!" in done.stdout
    assert not [line for line in done.stdout.splitlines() if " shall " in line or line.endswith("| ready")]
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("  Вера")]
    assert rows == [["Вера", "–", "отправлено", "–", "–", "–", "–"]] * 2
    channels = ["telegram", "vk", "max", "sms", "telegram-bot", "email"]
    assert [line.split() for line in done.stdout.splitlines()].count(channels) == 2
    assert "Вера, кнопка «Прочитано»: ответили 1, не ответили 0" in done.stdout
    assert "no_contact" not in done.stdout
    assert "          vk | В аудитории 12." in done.stdout.splitlines(), "the teacher's answer to a reply"
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_demo_scenarios_plays_the_example_bot_and_succeeds(installation: Installation) -> None:
    done = installation.ada("demo", "scenarios", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    shown = json.loads(done.stdout)
    assert (shown["reminder"]["state"], shown["reminder"]["counts"]["sent"]) == ("cancelled", 0)
    assert (shown["history"]["verdict"], shown["history"]["counts"]["reached"]) == ("all_reached", 2)
    assert shown["joined"]


def test_demo_jobs_kills_the_jobs_and_nothing_is_done_twice(installation: Installation) -> None:
    done = installation.ada("demo", "jobs", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["applications"] == 120


async def test_requests_above_the_configured_rate_get_429(own_server: Server, tmp_path: Path) -> None:
    settings = {"ADA_REDIS_URL": own_server.url, "ADA_DATA": str(tmp_path / "data"), "ADA_HTTP": "127.0.0.1:0"}
    limits = {"ADA_API_KEY": "ada_limited", "ADA_HTTP_RATE": "0.01", "ADA_HTTP_BURST": "2"}
    serve = AdaProcess(("serve",), settings | limits, tmp_path / "serve.log")
    url = str((await serve.ready())["http"]) + "/v1/deliveries"
    async with ClientSession(headers={"Authorization": "Bearer ada_limited"}) as session:
        responses = [await session.get(url) for _ in range(3)]
    serve.kill()
    assert [response.status for response in responses] == [200, 200, 429]
    assert responses[2].headers["Retry-After"] == "100"


def test_a_message_is_sent_over_every_channel_and_the_history_shows_it(running: Installation) -> None:
    history = running.result("send", *PEOPLE, "--text", "Моей пары не будет", "--wait")
    assert history["verdict"] == "all_reached"
    first, second = history["recipients"]
    assert sorted(first["received_in"]) == ["sms", "telegram", "vk"]
    assert second["received_in"] == ["vk"]
    assert running.result("show", history["history_key"])["text"] == "Моей пары не будет"
    assert "every recipient was reached" in running.ada("track", history["id"]).stdout


def test_what_is_written_to_the_simulated_account_of_telegram_is_in_the_inbox(running: Installation) -> None:
    """As the page of the account writes it: the bot of `up` signs in over MTProto."""
    create(running, "/v1/users", {"id": 61, "role": "staff", "contacts": {"telegram": ["100061"]}})
    create(running, "/v1/groups", {"id": "dean", "members": [61]})
    running.result("send", "--to", "61", "--text", "No classes", "--replies", "dean", "--wait")
    store = Redis.from_url(str(running_url(Path(running.environment["ADA_DATA"]) / "valkey")))
    await_sync(lambda: store.keys("dialog:*:polled:telegram.4242"), what="the first poll")
    url = urljoin((running.facts() or {})["inbox"], "/write/telegram")
    written = json.dumps({"address": 100061, "text": "And tomorrow?"}).encode()
    urlopen(Request(url, written, {"Content-Type": "application/json"})).close()
    inbox = ("inbox", "office:dean", "--reason", "a test")
    await_sync(lambda: "And tomorrow?" in running.ada(*inbox).stdout, what="the reply")


def test_a_scheduled_delivery_can_be_rescheduled_and_cancelled(running: Installation) -> None:
    sent = running.result("send", "--to", "vk:200001", "--text", "потом", "--at", "2027-01-01T00:00:00Z")
    assert sent["state"] == "scheduled"
    moved = running.result("reschedule", sent["id"], "--at", "2027-02-02T10:00:00+03:00")
    assert moved["deliver_at"].startswith("2027-02-02T07:00:00")
    assert running.result("cancel", sent["id"])["cancelled"] == 1
    assert running.ada("cancel", sent["id"]).returncode == 1
    assert running.ada("cancel").returncode == 2


def test_a_time_more_than_a_year_ahead_needs_far(running: Installation) -> None:
    far, farther = (f"{datetime.now(UTC) + timedelta(days=days):%FT%TZ}" for days in (400, 500))
    send = ("send", "--to", "vk:200001", "--text", "потом", "--at", far)
    refused = running.ada(*send)
    assert (refused.returncode, "more than a year ahead" in refused.stderr) == (2, True), refused.stderr
    sent = running.result(*send, "--far")
    assert sent["state"] == "scheduled"
    assert running.ada("reschedule", sent["id"], "--at", farther).returncode == 2
    moved = running.result("reschedule", sent["id"], "--at", farther, "--far")
    assert moved["deliver_at"] == farther


def test_an_error_of_the_api_is_printed_with_its_code(running: Installation) -> None:
    done = running.ada("send", "--to", "vk:1", "--text", "")
    assert done.returncode != 0
    assert "TEXT" in done.stderr
    shown = running.ada("show", "nonsense")
    assert (shown.returncode, "The id of a delivery looks like 0.42.1763712000000000000" in shown.stderr) == (2, True)


def test_keys_are_created_listed_and_revoked(running: Installation) -> None:
    running.result("send", "--to", "vk:200001", "--text", "x")  # so the first key was used
    key = running.result("key", "create", "деканат", "--scope", "send")
    listed = running.ada("key", "list", "--json").stdout
    assert key["id"] in listed
    assert key["secret"] not in listed
    lines = {line.split("  ")[0]: line for line in running.ada("key", "list").stdout.splitlines()}
    assert lines[key["id"]].endswith("never used")
    assert " made " in lines[key["id"]]
    assert any("first admin key" in line and ", last used 2" in line for line in lines.values())
    assert running.ada("key", "revoke", key["id"]).returncode == 0
    assert key["id"] not in running.ada("key", "list").stdout
    assert running.ada("key", "revoke", key["id"]).returncode == 1


def test_a_key_without_a_name_is_refused(running: Installation) -> None:
    for name in ("", "  ", "a\nb"):
        done = running.ada("key", "create", name)
        assert (done.returncode, done.stdout) == (2, "")
        assert "A key has a name" in done.stderr


def create(running: Installation, path: str, body: dict[str, Any]) -> None:
    """Write to the directory over HTTP."""
    facts = running.facts() or {}
    headers = {
        "Authorization": f"Bearer {Path(facts['key_file']).read_text().strip()}",
        "Content-Type": "application/json",
    }
    with urlopen(Request(f"{facts['api']}{path}", json.dumps(body).encode(), headers)) as response:
        assert response.status == 201


def test_send_warns_if_no_recipient_has_a_contact(running: Installation) -> None:
    for number in (71, 72):
        create(running, "/v1/users", {"id": number})
    done = running.ada("send", "--to", "71", "--to", "72", "--text", "x")
    assert done.returncode == 0
    assert "warning: no recipient has a contact" in done.stderr
    assert running.ada("send", "--to", "71", "--to", "vk:200001", "--text", "x").stderr == ""


def test_a_message_to_groups_of_the_directory_reaches_each_member_once(running: Installation) -> None:
    create(running, "/v1/users", {"id": 81, "contacts": {"vk": ["200081"]}})
    create(running, "/v1/users", {"id": 82, "contacts": {"sms": ["+79990000082"]}})
    create(running, "/v1/groups", {"id": "ИВТ-21", "members": [81, 82]})
    create(running, "/v1/supergroups", {"id": "1 курс", "groups": ["ИВТ-21"]})
    to = ("--to", "group:ИВТ-21", "--to", "supergroup:1 курс", "--to", "82")
    history = running.result("send", *to, "--text", "Пары не будет", "--wait")
    assert history["verdict"] == "all_reached"
    reached = {one["id"]: (one["origin"], one["received_in"]) for one in history["recipients"]}
    assert reached == {81: (["ИВТ-21"], ["vk"]), 82: (["ИВТ-21"], ["sms"])}
    refused = running.ada("send", "--to", "group:ИВТ-22", "--text", "x")
    assert (refused.returncode, "ИВТ-22" in refused.stderr) == (2, True)


def test_quiet_hours_are_off_in_the_sandbox_unless_they_are_set(running: Installation) -> None:
    assert "quiet hours are off" in (running.facts() or {})["night"]
    sent = running.result("send", "--to", "vk:200001", "--text", "x")
    assert (sent["state"], sent["moved_from"]) == ("released", None)


def test_a_recipient_has_the_same_notation_on_the_command_line_and_in_the_api(running: Installation) -> None:
    history = running.result("send", "--to", "7 = vk: 200001, sms: +79990000001", "--text", "x", "--wait")
    assert history["recipients"][0]["id"] == 7
    assert sorted(history["recipients"][0]["received_in"]) == ["sms", "vk"]
    refused = running.ada("send", "--to", "7=vk", "--text", "x")
    assert (refused.returncode, "“vk” is not channel:address" in refused.stderr) == (2, True)


def test_doctor_reports_a_running_installation_as_good(running: Installation) -> None:
    done = running.ada("doctor", "--json")
    found = {one["what"]: one["is_good"] for one in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0
    assert found["redis"]
    assert found["clock"]
    assert found["vk"], "it runs under `up`, though its settings are those of `up` alone"
    assert running.ada("courier", "vk", "--healthy").returncode == 0


def test_a_killed_courier_is_restarted_and_the_others_keep_working(running: Installation) -> None:
    os.kill(running.child("cli courier vk"), signal.SIGKILL)
    history = running.result("send", *PEOPLE, "--text", "один раз", "--wait")
    assert history["verdict"] == "all_reached"


def test_what_was_terminated_runs_again_and_what_cannot_run_is_named(
    installation: Installation, sms_account: Mapping[str, str]
) -> None:
    """A terminated part stayed away for good, and no command said so (39.32). A sync of ADA_SYNCS is a part, too."""
    installation.environment |= {**sms_account, "ADA_JOBS": "no.such.module", "ADA_SYNCS": "syncs.txt"}
    (installation.directory / "syncs.txt").write_text("1c people.csv --every 1h  # the dean's office\n")
    people = installation.directory / "people.csv"
    people.write_text("id,name\n00042,Vera\n")
    os.utime(people, (0, 0))  # it is no longer written
    facts = installation.up()
    sync_line = re.compile(r"good  sync 1c .*again each 60 min by `./ada up`")
    await_sync(lambda: bool(sync_line.search(installation.ada("doctor").stdout)), what="the first run of the sync")
    for name in ("cli courier sms", "cli serve"):
        installation.terminate(name)
    found = [json.loads(line) for line in installation.ada("doctor", "--json").stdout.splitlines()]
    (up,) = [one for one in found if one["what"] == "up"]
    fault = "jobs should run and has stopped for good: exit code 2: "
    assert (up["is_good"], up["detail"].startswith(fault)) == (False, True), up
    key = Path(facts["key_file"]).read_text().strip()
    request = Request(f"{facts['api']}/v1/processes", headers={"Authorization": f"Bearer {key}"})
    (part,) = await_sync(lambda: faulty_parts(request), within=60, what="the note in an entry")
    assert (part["name"], part["state"]) == ("jobs", "stopped")
    shown = installation.ada("processes")
    assert (shown.returncode, fault.removeprefix("jobs ") in shown.stdout) == (1, True), shown.stdout
    installation.end()
    found = [json.loads(line) for line in installation.ada("doctor", "--json").stdout.splitlines()]
    assert [one["detail"] for one in found if one["what"] == "up"] == ["does not run with this ADA_DATA"]


def faulty_parts(request: Request) -> list[dict[str, Any]]:
    try:
        with urlopen(request) as response:
            faulty: list[dict[str, Any]] = json.load(response)["faulty"]
            return faulty
    except URLError:  # it has not started again yet
        return []


def test_a_first_key_that_was_revoked_is_replaced_as_the_guide_says_and_never_comes_back_while_all_goes_on(
    installation: Installation,
) -> None:
    installation.up()
    file = installation.directory / "data" / "api_key"
    (first,) = [json.loads(line) for line in installation.ada("key", "list", "--json").stdout.splitlines()]
    old, shown = file.read_text(), ""
    for words in commands_run_by("tests/cli/up/test_up.py", ROOT / "docs" / "keys-and-scopes.md"):
        done = [first["id"] if word == "ID" else word for word in words]
        if done[0] == "rm":
            (installation.directory / done[1]).unlink()
        else:
            shown += installation.ada(*done[1:]).stdout
    assert "it is the first key, which `./ada send` and others use. To replace it: delete the file api_key" in shown
    installation.end()
    installation.up()
    assert file.read_text() != old
    assert installation.result("key", "list")["id"] != first["id"]
    installation.end()
    file.write_text(old)
    installation.up()
    assert installation.end() == 0
    assert (
        "the first API key was revoked: requests with it are refused. To replace it: delete"
        in installation.log.read_text()
    )


def test_up_prints_one_line_for_each_event_ctrl_c_stops_it_in_seconds_and_the_data_are_kept(
    installation: Installation, sms_account: Mapping[str, str]
) -> None:
    """No line for each message, and the first API key only if it is asked for."""
    installation.up_for_people("--show-key")
    key = (installation.directory / "data" / "api_key").read_text().strip()
    os.kill(installation.child("cli courier vk"), signal.SIGKILL)
    await_sync(lambda: "vk | ready" in installation.log.read_text(), what="the courier")
    assert installation.ada("send", *PEOPLE, "--text", "x", "--wait").returncode == 0
    sent = installation.result("send", "--to", "vk:200001", "--text", "после", "--at", "2027-01-01T00:00:00Z")
    pids = installation.children()
    assert installation.end(signal.SIGINT) == 0
    await_sync(lambda: have_ended(pids), what="the end of all processes")
    start, _, events = installation.log.read_text().partition("Ada is up")
    assert [line[9:].strip() for line in start.splitlines()] == ["up | starting", ""]
    assert ["key", key] in [line.split() for line in events.splitlines()]
    timed = [line for line in events.splitlines() if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert [line[9:].strip() for line in timed] == [
        "vk | ended (signal SIGKILL), restarts in 0.5 s",
        "vk | ready",
        "up | stopping; couriers finish what they are sending",
        "up | stopped",
    ]
    installation.environment |= sms_account
    again = installation.up()
    assert Path(again["key_file"]).read_text().strip() == key
    assert key not in installation.log.read_text()
    assert installation.result("show", sent["id"])["state"] == "scheduled"
    pids = installation.children()
    assert len(pids) > 6
    installation.end(signal.SIGKILL)
    await_sync(lambda: have_ended(pids), what="the end of all processes")


def test_a_second_up_on_the_same_data_is_refused_with_a_clear_message(running: Installation) -> None:
    done = running.ada("up")
    assert done.returncode == 1
    assert "another ada (process" in done.stderr


def test_up_fails_at_once_if_the_port_is_taken_and_starts_nothing(installation: Installation) -> None:
    host, _, port = installation.environment["ADA_HTTP"].partition(":")
    with socket.create_server((host, int(port))):
        done = installation.ada("up")
    assert (done.returncode, done.stderr) == (
        1,
        f"ada: cannot listen on {host}:{port}: Address already in use; set ADA_HTTP to another\n",
    )
    assert done.stdout.split()[1:] == ["up", "|", "starting"], "no process was started"


def test_a_killed_embedded_server_is_restarted_with_its_data(running: Installation) -> None:
    sent = running.result("send", "--to", "vk:200001", "--text", "потом", "--at", "2027-01-01T00:00:00Z")
    data = Path(running.environment["ADA_DATA"]) / "valkey"
    url = str(running_url(data))
    os.kill(running.child("valkey-server 127.0.0.1"), signal.SIGKILL)
    await_sync(lambda: is_answering(url), what="the server")
    assert running.result("show", sent["id"])["state"] == "scheduled"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of a process")
def test_the_embedded_server_keeps_freed_memory_at_hand(running: Installation) -> None:
    """The server overwrites its own environment with its process title; the shell beside it inherited the same one."""
    server = running.child("valkey-server 127.0.0.1")
    (shell,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    environment = Path(f"/proc/{shell}/environ").read_text().replace("\0", ":")  # so the C library splits the variable
    assert all(f"{name}={value}" in environment for name, value in ENVIRONMENT.items())


def is_answering(url: str) -> bool:
    try:
        return bool(Redis.from_url(url, retry=None).ping())
    except Unreachable:
        return False


def test_without_a_running_ada_a_verb_says_what_to_start(installation: Installation) -> None:
    done = installation.ada("send", "--to", "1", "--text", "x")
    assert done.returncode == 2
    assert "./ada up" in done.stderr


def test_an_unreachable_api_is_reported_in_plain_words(installation: Installation) -> None:
    installation.environment["ADA_API_KEY"] = "ada_x"
    done = installation.ada("send", "--to", "1", "--text", "x")
    address = installation.environment["ADA_HTTP"]
    assert done.returncode == 2
    assert done.stderr == (
        f"ada: cannot reach Ada at http://{address} (connection refused); start `./ada up`, or set ADA_HTTP\n"
    )


def test_a_wrong_address_of_the_sandbox_is_reported_in_plain_words(installation: Installation) -> None:
    done = installation.ada("sandbox", "--http", "nonsense")
    assert done.returncode == 2
    assert done.stderr == "ada: --http is nonsense, which is not host:port, for example 127.0.0.1:8080\n"
