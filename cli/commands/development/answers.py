"""The page docs/answers.md: which answer of a provider concerns one recipient, and which the account (D-53).

It calls the couriers' own functions.
"""

from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module

from couriers.channel import channels
from couriers.sending import Deferred, Halted, Outcome, Rejected, Scope, Sent, Split

HEAD = ("step", "answer", "concerns", "what follows")
INTRODUCTION = """# Which answer concerns whom

An answer concerns the account only where that is certain: all its messages wait then, or an operator must act. Every
other answer, silence and a cut connection concern one recipient, and the others go on (D-53):
tests/couriers/test_one_recipient_delays_no_other.py.

"Counts" means that the attempt is one of those after which the message ends. Without a wait the pauses double. A wait
that the provider named does not count, unless this message has triggered a wait of the account. A server that cannot
be reached is not the fault of a recipient: the attempt counts only if other messages got through meanwhile. So
nothing ends while the server is down for everybody, and a recipient whose attempts bring the connection down ends
while others are sent.
"""


def tables() -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Emit the titles and the rows of each channel that documents its answers."""
    for module in filter(None, (channel.outcomes for channel in channels().values())):
        for title, rows in import_module(module).answer_tables().items():
            yield title, [(step, answer, concerns(outcome), follows(outcome)) for step, answer, outcome in rows]


def concerns(outcome: Outcome) -> str:
    match outcome:
        case Halted():
            return "**account**"
        case Deferred(scope=Scope.ACCOUNT | Scope.METHOD, after=timedelta()):
            return "**account**"
        case Deferred(scope=Scope.CHAT):
            return "chat"
        case Split():
            return "one of the batch"
    return "recipient"


def follows(outcome: Outcome) -> str:
    match outcome:
        case Sent():
            return "sent"
        case Halted():
            return "stopped until an operator acts; the messages stay queued"
        case Rejected(reason):
            return f"failed ({reason})"
        case Deferred(reason, None):
            return f"again, counts; then failed ({reason})"
        case Deferred(reason, timedelta() as after):
            return f"again after {after.total_seconds():g} s{', counts' if outcome.is_guess else ''} ({reason})"
        case Split():
            return "the batch is sent in halves"
    return "it may have been sent: again under the same id where the provider recognises it, else unknown (answer_lost)"
