"""The value types of the sandbox: a message received or written, a fault, and a rule that injects a fault."""

from dataclasses import dataclass

ANY = "*"


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """One message that a recipient received."""

    number: int  # 1, 2, 3 … over all channels
    channel: str  # "telegram" | "vk" | "sms" | "telegram-bot" | "max" | "email"
    address: (
        str  # of the recipient: user id as string / VK peer id / MAX user or chat id / E.164 number / e-mail address
    )
    text: str
    reference: str  # the provider's message id
    random_id: int | None
    at: float  # unix seconds
    subject: str = ""  # of a mail


@dataclass(frozen=True, slots=True)
class WrittenMessage:
    """One message that a person wrote."""

    number: int  # 1, 2, 3 … over all channels
    channel: str  # "telegram" | "vk" | "sms"; the chats of the bot are kept by its server
    address: str  # of the person
    text: str
    at: float  # unix seconds


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure to inject. The names of each channel are in `faults.py`."""

    name: str
    value: int | None = None  # seconds or a code, if the fault takes one


@dataclass(frozen=True, slots=True)
class Rule:
    """Injects a fault into all matching calls; `*` matches everything."""

    channel: str
    fault: Fault
    address: str = ANY
    method: str = ANY
    times: int | None = None  # how many more times it applies; None: without limit

    def matches(self, channel: str, address: str, method: str) -> bool:
        return self.channel == channel and self.address in (ANY, address) and self.method in (ANY, method)
