"""The sandbox's words: a message that reached somebody, a failure, and the rule that orders one."""

from dataclasses import dataclass

ANY = "*"


@dataclass(frozen=True, slots=True)
class Received:
    """One message that reached one person."""

    number: int  # 1, 2, 3 … over all channels
    channel: str  # "telegram" | "vk" | "sms"
    address: str  # whom: user id as string / vk peer id / E.164 number
    text: str
    reference: str  # the provider's message id
    random_id: int | None
    at: float  # unix seconds


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rule or a magic recipient does; the names of each channel are in `faults.py`."""

    name: str
    value: int | None = None  # seconds or a code, where the fault wants one


@dataclass(frozen=True, slots=True)
class Rule:
    """Orders a fault for whatever matches; `*` matches everything."""

    channel: str
    fault: Fault
    address: str = ANY
    method: str = ANY
    times: int | None = None  # how often it still strikes; None: always

    def matches(self, channel: str, address: str, method: str) -> bool:
        return self.channel == channel and self.address in (ANY, address) and self.method in (ANY, method)
