"""SMS through the HTTP interfaces of providers: each profile against the sandbox, and by recorded answers."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.processes.embedded_valkey import free_port
from couriers.sending import Deferred, Halted, Message, Reason, Rejected, Scope, Sent, SetupError, Unknown
from couriers.sms import courier as sms
from couriers.sms.by_profile import ProfileSms
from couriers.sms.profile import decide, load_profile, own_profiles, read_answer, read_reports
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.sms.providers import BALANCE, PASSWORD, USERNAME, SmsProvidersServer
from sandbox.state import Fault, Rule, SandboxState
from tests.couriers.contract import OutageContract
from tests.couriers.contract import Provider as Contracted

PROFILES = own_profiles()
NUMBER = "+79991112233"
MAGIC = {fault.name: address for address, fault in MAGIC_RECIPIENTS["sms"].items()}
every_profile = pytest.mark.parametrize("name", PROFILES)


@dataclass
class Provider:
    state: SandboxState
    server: SmsProvidersServer
    opened: list[ProfileSms]

    def settings(self, name: str, **changed: Any) -> sms.Settings:
        timeout = timedelta(seconds=2)
        given = {
            "url": self.server.url,
            "username": USERNAME,
            "password": PASSWORD,
            "sender": "Ada",
            "timeout": timeout,
        }
        return sms.Settings(**{**given, "profile": name, **changed})

    async def open(self, name: str, **changed: Any) -> ProfileSms:
        courier = await sms.open(self.settings(name, **changed), Path())
        assert isinstance(courier, ProfileSms)
        self.opened.append(courier)
        return courier


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    state = SandboxState()
    server = SmsProvidersServer(state)
    await server.start()
    opened = Provider(state, server, [])
    yield opened
    for courier in opened.opened:
        await courier.close()
    await server.stop()


async def send(courier: ProfileSms, address: str = NUMBER, text: str = "Пары не будет {} & 5 %") -> Any:
    return (await courier.attempt([Message(address, text, "delivery", "1")]))[0]


class ContractProvider(Contracted):
    """SMSC.ru for the contract of couriers."""

    module = sms
    secrets = (PASSWORD,)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.state, self.port = SandboxState(), free_port()

    def settings(self) -> sms.Settings:
        return sms.Settings(f"http://127.0.0.1:{self.port}", USERNAME, PASSWORD, "Ada", profile="smsc.ru")

    def address(self, number: int) -> str:
        return f"+7999000{number:04}"

    def received(self, address: str) -> list[str]:
        return [one.text for one in self.state.inbox("sms", address)]

    async def start(self) -> None:
        self.server = SmsProvidersServer(self.state, port=self.port)
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()


class TestContract(OutageContract):
    @pytest.fixture
    async def provider(self, tmp_path: Path) -> AsyncIterator[ContractProvider]:
        opened = ContractProvider(tmp_path)
        await opened.start()
        yield opened
        await opened.close()
        await opened.stop()

    async def test_the_longest_text_is_received_unchanged(self, provider: Contracted) -> None:
        """It has 62 parts, and the profile allows 10: nothing is sent."""
        (outcome,) = await (await provider.open()).attempt([Message(provider.address(1), "я" * 4096, "d", "1")])
        assert isinstance(outcome, Rejected)
        assert provider.received(provider.address(1)) == []


@every_profile
async def test_a_message_arrives_letter_for_letter_and_the_balance_is_known(provider: Provider, name: str) -> None:
    courier = await provider.open(name)
    outcome = await send(courier)
    (received,) = provider.state.inbox("sms", NUMBER)
    assert isinstance(outcome, Sent)
    assert received.text == "Пары не будет {} & 5 %"
    assert received.reference in outcome.reference
    assert (courier.balance, courier.account) == (BALANCE, name)


@every_profile
@pytest.mark.parametrize(
    ("fault", "expected", "copies"),
    [
        *(("bad_number", Rejected, 0), ("no_money", Halted, 0), ("unauthorized", Halted, 0), ("busy", Deferred, 0)),
        *(("bad_gateway", Unknown, 0), ("not_json", Unknown, 0), ("disconnect_before", Unknown, 0)),
    ],
)
async def test_a_fault_has_the_outcome_of_the_profile_and_is_not_repeated(
    provider: Provider, name: str, fault: str, expected: type, copies: int
) -> None:
    courier = await provider.open(name)
    assert isinstance(await send(courier, MAGIC[fault]), expected)
    assert provider.state.counter("sms", name) == 1
    assert len(provider.state.inbox("sms", MAGIC[fault])) == copies


@every_profile
async def test_after_a_lost_answer_a_provider_that_knows_our_id_is_asked_and_any_other_one_is_not(
    provider: Provider, name: str
) -> None:
    courier = await provider.open(name)
    outcome = await send(courier, MAGIC["accepted_then_cut"])
    assert isinstance(outcome, Sent if name == "smsc.ru" else Unknown)
    assert len(provider.state.inbox("sms", MAGIC["accepted_then_cut"])) == 1


@every_profile
async def test_a_wrong_account_is_a_setup_error_that_names_the_setting_and_not_the_password(
    provider: Provider, name: str
) -> None:
    with pytest.raises(SetupError, match="ADA_SMS_") as error:
        await provider.open(name, password="wrong-one")
    assert "wrong-one" not in str(error.value)


async def test_a_profile_of_ones_own_is_a_file(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        """
name: mine
send: {url: "https://example.org/sms/send", body: form, fields: {api_id: "{password}", to: "{digits}", msg: "{text}"}}
answer: {format: text, rules: [{contains: '"status_code": 100', then: sent}]}
"""
    )
    courier = await provider.open(str(tmp_path / "mine.yaml"))
    assert isinstance(await send(courier), Sent)
    assert courier.balance is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: [", "is not YAML"),
        ("name: x", "missing required field `send`"),
        ("{name: x, send: {url: 'https://x', fields: {a: '{nonsense}'}}, answer: {rules: []}}", "wrong placeholder"),
        ("{name: x, send: {url: 'https://x'}, answer: {rules: [{then: retry}]}}", "Invalid enum value 'retry'"),
        ("{name: x, send: {url: 'https://x'}, answer: {rules: []}, more: 1}", "unknown field `more`"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_with_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(SetupError, match=complaint):
        load_profile(str(tmp_path / "x.yaml"))


def test_an_unknown_profile_and_a_missing_setting_are_named() -> None:
    with pytest.raises(SetupError, match=r"none of kannel, exolve, sms\.ru"):
        sms.Settings(profile="smsru")
    with pytest.raises(SetupError, match="ADA_SMS_USERNAME and ADA_SMS_PASSWORD must be set"):
        sms.Settings(profile="smsc.ru")
    with pytest.raises(SetupError, match=r"ADA_SMS_URL and .* must be set"):
        sms.Settings()


RECORDED: list[tuple[str, int, Any, str]] = [
    ("sms.ru", 200, {"status": "OK", "status_code": 100, "sms": {"7": {"status_code": 100, "sms_id": "1"}}}, "sent"),
    ("sms.ru", 200, {"status": "OK", "status_code": 100, "sms": {"7": {"status_code": 207}}}, "failed"),
    ("sms.ru", 200, {"status": "ERROR", "status_code": 301}, "stop"),
    ("sms.ru", 200, {"status": "ERROR", "status_code": 500}, "unknown"),
    ("sms.ru", 503, {}, "unknown"),
    ("smsc.ru", 200, {"id": 5, "cnt": 1}, "sent"),
    ("smsc.ru", 200, {"error": "x", "error_code": 8, "id": 5}, "failed"),
    ("smsc.ru", 200, {"error": "x", "error_code": 4}, "deferred"),
    ("smsc.ru", 200, {"error": "x", "error_code": 77}, "unknown"),
    ("exolve", 200, {"message_id": "439166"}, "sent"),
    ("exolve", 200, {}, "unknown"),
    ("exolve", 500, {"error": {"code": 13}}, "unknown"),
    ("smsaero", 200, {"success": True, "data": {"id": 1}}, "sent"),
    ("smsaero", 200, {"success": False, "data": {"id": 1}}, "unknown"),
    ("twilio", 201, {"sid": "SM1", "code": None}, "sent"),
    ("twilio", 400, {"code": 21610}, "failed"),
    ("twilio", 400, {"code": 21606}, "failed"),  # the sender and this number do not fit
    ("twilio", 400, {"code": 21603}, "stop"),
    ("twilio", 500, {"code": 20500}, "unknown"),
]


@pytest.mark.parametrize(("name", "status", "body", "meaning"), RECORDED)
def test_an_answer_means_what_the_profile_says_and_anything_else_is_unknown(
    name: str, status: int, body: Any, meaning: str
) -> None:
    profile = load_profile(name)
    answer = read_answer(profile.answer, status, json.dumps(body, separators=(",", ":")))
    rule = decide(profile.answer.rules, answer)
    assert (rule.then if rule else "unknown") == meaning


def test_several_reports_of_one_call_are_read() -> None:
    reports = load_profile("sms.ru").reports
    assert reports is not None
    fields = {"data[0]": "sms_status\n000-1\n103\n5", "data[1]": "callcheck_status\n000-2\n999\n5", "hash": "x"}
    assert read_reports(reports, fields) == [("000-1", "delivered"), ("000-2", "")]


async def test_a_wait_of_the_account_and_of_one_recipient_are_two_things(provider: Provider) -> None:
    courier = await provider.open("smsc.ru")
    provider.state.add_rule(Rule("sms", Fault("busy"), NUMBER, times=1))
    outcome = await send(courier)
    assert (outcome.reason, outcome.after, outcome.scope) == (Reason.THROTTLED, timedelta(minutes=1), Scope.RECIPIENT)


async def test_a_text_of_too_many_parts_and_a_wrong_number_are_refused_without_a_request(provider: Provider) -> None:
    courier = await provider.open("sms.ru")
    for address, text in ((NUMBER, "ж" * 4000), ("nobody", "x")):
        assert isinstance(await send(courier, address, text), Rejected)
    assert provider.state.counter("sms", "sms.ru") == 0
