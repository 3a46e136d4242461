"""SMS through a provider's HTTP interface, as a profile describes it (`couriers.sms.profile`).

A request is made once. What no rule of the profile names, and a lost answer, is `Unknown`, unless the provider can be
asked for the message by our own id and has it. Only a connection that was never made has surely sent nothing.
"""

from collections.abc import Mapping
from datetime import timedelta

import aiohttp
from yarl import URL

from couriers.provider_calls import Announce, announcing, noted_call
from couriers.sending import (
    Deferred,
    Halted,
    Message,
    Outcome,
    Reason,
    Rejected,
    Scope,
    Sent,
    SetupError,
    Unknown,
    sentence,
)
from couriers.sms import outcomes
from couriers.sms.base import SmsCourier
from couriers.sms.profile import Balance, Profile, Read, Rule, SmsRequest, decide, decoded, read_answer, value_at

_FAILURES = (aiohttp.ClientError, OSError)


class ProfileSms(SmsCourier):
    """Sends as a profile describes. `base`: the host in place of the provider's, for a test. `account` is the profile's
    name, by which delivery reports find the message.
    """

    def __init__(
        self,
        profile: Profile,
        values: Mapping[str, str],
        session: aiohttp.ClientSession,
        base: URL | None = None,
        price: str = "",
        low_balance: float = 0.0,
        *,
        numbers: bool = False,
    ) -> None:
        super().__init__(session, price, profile.most_parts, profile.name, numbers=numbers)
        self.profile = profile
        self.balance: float | None = None  # of the account, as far as it was asked for
        self.low_balance = low_balance
        self.account = profile.name
        self._values = {"sender": "", **values}
        self._base = base

    async def _send(self, message: Message, number: str) -> Outcome:
        values = self._values | {
            "number": number,
            "digits": number.removeprefix("+"),
            "text": message.text,
            "own_id": str(message.random_id(bits=31)),
            "report_url": self._report_url(message.report_url),
        }
        return await self._send_values(values, message.announce)

    def _report_url(self, report: str) -> str:
        """Return the address for the reports of one message: that of the profile, with the token of the message."""
        reports = self.profile.reports
        if not report or reports is None or reports.by != "token":
            return ""
        url = URL(report)
        return str(url.with_path(f"{url.path}/{self.profile.name}").with_query(url.query))

    async def _send_values(self, values: Mapping[str, str], announce: Announce) -> Outcome:
        try:
            with announcing(announce):
                answer = read_answer(self.profile.answer, *await self._request(self.profile.send, values))
        except _FAILURES as error:
            outcome = outcomes.outcome_of_error(error)
        else:
            outcome = self._outcome(decide(self.profile.answer.rules, answer), answer)
        if isinstance(outcome, Unknown) and (found := await self._found(values)):
            return found
        return outcome

    def _outcome(self, rule: Rule | None, answer: Read) -> Outcome:
        detail = f"{answer.http} {answer.code}".rstrip()
        match rule.then if rule else "unknown":
            case "sent":
                return self._sent(answer.id)
            case "failed" if rule:
                return Rejected(Reason(rule.reason), detail)
            case "deferred" if rule:
                scope = Scope.ACCOUNT if rule.account else Scope.RECIPIENT
                wait = timedelta(seconds=rule.wait)
                return Deferred(Reason.THROTTLED, wait, scope, detail, is_guess=not rule.account)
            case "stop" if rule:
                return Halted(rule.why or sentence("halt_answers", provider=self.account, answer=detail))
        return Unknown(detail)

    def _sent(self, reference: str) -> Sent:
        """Return the outcome; if reports come by id, the message is noted under its own."""
        is_by_id = self.profile.reports is not None and self.profile.reports.by == "id"
        return Sent(reference, peer=reference, number=1) if is_by_id and reference else Sent(reference)

    async def _found(self, values: Mapping[str, str]) -> Sent | None:
        """Ask for the message by our own id; None unless the provider has it."""
        status = self.profile.status
        if status is None:
            return None
        try:
            answer = read_answer(status.answer, *await self._request(status.request, values))
        except _FAILURES:
            return None
        rule = decide(status.answer.rules, answer)
        return self._sent(values["own_id"]) if rule and rule.then == "sent" else None

    async def check(self) -> float | None:
        """Return what is left on the account, None if the profile cannot ask. Raises SetupError."""
        balance = self.profile.balance
        if balance is None:
            return None
        try:
            status, body = await self._request(balance.request, self._values)
        except _FAILURES as error:
            detail = f"{self.account} cannot be reached ({type(error).__name__}): check the network"
            raise SetupError(detail) from None
        return _balance(balance, Read(status, body, value_at(decoded(body), balance.code)), self.account)

    async def _request(self, request: SmsRequest, values: Mapping[str, str]) -> tuple[int, str]:
        """Return status and body of one request. It holds the password and must not be shown."""
        url = URL(request.url.format(**_quoted(values)))
        if self._base is not None:
            url = url.with_scheme(self._base.scheme).with_host(str(self._base.host)).with_port(self._base.port)
        fields = {name: text for name, given in request.fields.items() if (text := _filled(given, values))}
        known = _authorization(request, values)
        sent = self._session.request(
            request.method,
            url,
            params=fields if request.body == "query" else None,
            data=fields if request.body == "form" else None,
            json=fields if request.body == "json" else None,
            headers={"Authorization": known} if known else {},
            allow_redirects=False,
        )
        # The address as the profile has it: with placeholders, and without the password.
        with noted_call(f"{request.method} {request.url.partition('?')[0]}") as call:
            async with sent as response:
                body = await response.text(errors="replace")
                call.answered(response.status, body)
                return response.status, body


def _authorization(request: SmsRequest, values: Mapping[str, str]) -> str:
    if request.auth == "basic":
        return aiohttp.encode_basic_auth(values["username"], values["password"])
    return f"Bearer {values['password']}" if request.auth == "bearer" else ""


def _filled(given: str, values: Mapping[str, str]) -> str:
    """Return a field with its placeholders replaced; those without a value here are empty."""
    return given.format(**{"id": "", "number": "", "digits": "", "text": "", "own_id": "", "report_url": "", **values})


def _quoted(values: Mapping[str, str]) -> dict[str, str]:
    return {name: URL.build(path=f"/{text}").raw_path[1:] for name, text in values.items()}


def _balance(balance: Balance, answer: Read, account: str) -> float:
    """Return the balance of an answer. Raises SetupError."""
    rule = decide(balance.refused, answer)
    if rule is not None:
        raise SetupError(rule.why or f"{account} refuses the account")
    try:
        return float(value_at(decoded(answer.body), balance.path))
    except ValueError:
        raise SetupError(f"{account} does not say what is on the account ({answer.http}): check the profile") from None
