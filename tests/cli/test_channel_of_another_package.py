"""A channel that is installed beside Ada, with no file of Ada changed: sent by, written to, received by poll and by
webhook, reported by HTTP, simulated, previewed, shown, imported, played by the demo.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.installation import Installation, new_installation
from tests.support.waiting import await_sync

PACKAGE = Path(__file__).parent / "pigeon"
TEACHER, STUDENT, STRANGER = "loft-1", "loft-2", "loft-3"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """`./ada up` with everything simulated, where the package pigeon is installed."""
    for one in new_installation(tmp_path_factory.mktemp("pigeon")):
        one.environment["PYTHONPATH"] += os.pathsep + str(PACKAGE)
        one.up()
        for verb in (
            ("user", "add", "1", "--role", "trainer", "--locale", "en", "--contact", f"pigeon:{TEACHER}"),
            ("user", "add", "2", "--contact", f"pigeon:{STUDENT}"),
            ("group", "add", "g1", "--title", "ИВТ-1", "--member", "2"),
            ("owner", "add", "1", "group:g1"),
        ):
            one.result(*verb)
        yield one


def call(url: str, body: object = None, **headers: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json", **headers})) as response:
        read = response.read()
    return json.loads(read) if read.startswith((b"[", b"{")) else read


def loft(installation: Installation) -> str:
    return (installation.directory / "data" / "sandbox" / "pigeon" / "address.txt").read_text()


def received(installation: Installation, address: str) -> list[str]:
    return [one["text"] for one in call(f"{loft(installation)}/sent") if one["to"] == address]


def api(installation: Installation, path: str, body: object = None) -> Any:
    key = (installation.directory / "data" / "api_key").read_text().strip()
    return call(f"{(installation.facts() or {})['api']}{path}", body, Authorization=f"Bearer {key}")


def test_it_is_started_and_shown_like_the_others(installation: Installation) -> None:
    facts = installation.facts() or {}
    assert facts["couriers"].endswith("email, web-push, pigeon")
    assert "pigeon" in facts["bots"]
    assert "pigeon" in [one["channel"] for one in api(installation, "/v1/channels")["channels"]]
    running = [(one["kind"], one["name"]) for one in api(installation, "/v1/processes")["processes"]]
    assert {("courier", "pigeon"), ("bot", "pigeon")} <= set(running)
    findings = [json.loads(line) for line in installation.ada("doctor", "--json").stdout.splitlines()]
    assert "pigeon" in [one["what"] for one in findings]


def test_a_message_is_previewed_by_its_limits_and_sent(installation: Installation) -> None:
    body = {"sender": {"id": 9}, "recipients": [f"7=pigeon:{STRANGER}"], "channels": ["pigeon"], "text": "a" * 50}
    shown = api(installation, "/v1/deliveries/preview", body)["shown"]["pigeon"]["messages"]
    assert [len(one["text"]) for one in shown] == [40, 10]
    done = installation.result("send", "--channel", "pigeon", "--to", f"7=pigeon:{STRANGER}", "--text", "hi", "--wait")
    assert done["counts"]["sent"] == 1
    assert received(installation, STRANGER) == ["hi"]


@pytest.mark.parametrize(("state", "status"), [("landed", "delivered"), ("lost", "failed")])
def test_what_its_provider_reports_is_in_the_history(installation: Installation, state: str, status: str) -> None:
    address = f"loft-{state}"
    sent = installation.result("send", "--channel", "pigeon", "--to", f"7=pigeon:{address}", "--text", "hi", "--wait")
    report = next(one["report"] for one in call(f"{loft(installation)}/sent") if one["to"] == address)
    assert "/v1/receipts/pigeon?token=" in report
    with pytest.raises(HTTPError, match="400"):
        call(f"{report}&state=eaten")
    assert call(f"{report}&state={state}") == {"changed": True}
    history = api(installation, f"/v1/deliveries/{sent['id']}")
    assert history["recipients"][0]["outcomes"]["pigeon"]["status"] == status


def test_a_teacher_writes_by_it_and_the_group_gets_the_message_by_it(installation: Installation) -> None:
    call(f"{loft(installation)}/write", {"from": TEACHER, "text": "ИВТ-1 No lesson today"})
    await_sync(lambda: received(installation, STUDENT) == ["No lesson today"], "the message of the teacher")
    accepted = "Accepted. ИВТ-1, recipients: 1."
    await_sync(lambda: accepted in received(installation, TEACHER), "the answer to the teacher")


def test_what_is_posted_with_the_secret_is_answered_and_without_it_refused(installation: Installation) -> None:
    webhook = f"{(installation.facts() or {})['api']}/v1/updates/pigeon"
    update = {"id": "p1", "from": "loft-4", "text": "hello"}
    with pytest.raises(HTTPError, match="403"):
        call(webhook, update, **{"X-Pigeon-Ring": "ring-8"})
    assert call(webhook, update, **{"X-Pigeon-Ring": "ring-7"}) == b"ok"
    await_sync(lambda: received(installation, "loft-4"), "the answer of the dialog")


def test_a_table_of_people_names_its_column_by_the_word_of_the_record(installation: Installation) -> None:
    table = installation.directory / "people.csv"
    table.write_text("ид;Голубь\n77;loft-77\n")
    installation.result("import", "users", str(table))
    assert api(installation, "/v1/users/77")["contacts"] == {"pigeon": ["loft-77"]}


def test_the_demo_sends_by_it_to_the_person_of_the_record(installation: Installation) -> None:
    played = installation.result("demo")
    people = played["history"]["recipients"]
    by_pigeon = {one["id"]: one["outcomes"]["pigeon"]["status"] for one in people}
    assert by_pigeon == {1: "no_contact", 2: "sent", 3: "no_contact", 4: "no_contact", 5: "no_contact"}
