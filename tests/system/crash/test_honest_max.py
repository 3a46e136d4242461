"""MAX recognises no repeat: under random faults and kills no status may contradict what the provider has."""

import random
from collections import Counter

import pytest

from core.model.states import Status
from couriers.sending.services import CourierOptions
from sandbox.events import Fault, Rule
from tests.support.waiting import until
from tests.system.crash.installation import MAX, Installation, person

MANY = 1010
FAULTY = 150
"""People whose first message meets with a fault."""
FAULTS = (
    *("suspended", "chat_not_found", "bad_payload", "error_with_200", "denied_with_200", "busy", "server_error"),
    *("bad_gateway", "not_json", "stored_then_error", "stored_then_bad_gateway", "stored_then_not_json"),
    *("disconnect_before", "disconnect_after"),
)
RARE = ("stored_then_silence", "timeout", "too_fast", "flood_wait")
"""Each of them takes a second or more."""


def inject(installation: Installation, seed: int) -> None:
    chance = random.Random(seed)
    people = chance.sample(range(MANY), FAULTY)
    for place, number in enumerate(people):
        name = RARE[place] if place < len(RARE) else chance.choice(FAULTS)
        fault = Fault(name, 1 if name == "flood_wait" else None)
        installation.state.add_rule(Rule("max", fault, MAX.address(number), "sendMessage", times=1))


@pytest.mark.parametrize("kills", [pytest.param(0, marks=pytest.mark.long), 2])
async def test_no_status_contradicts_max_nothing_is_lost_and_nothing_is_there_twice(
    installation: Installation, kills: int
) -> None:
    inject(installation, seed=kills)
    couriers = [await installation.courier(MAX, ADA_MAX_TIMEOUT="5s") for _ in range(2)]
    accepted = await installation.deliver(*(person(number, MAX) for number in range(MANY)))
    for kill in range(kills):
        enough = MANY * (kill + 1) // 4
        await until(lambda: installation.copies(MAX).total() > enough, within=60)  # noqa: B023 - awaited at once
        couriers[kill].kill()
        couriers.append(await installation.courier(MAX, ADA_MAX_TIMEOUT="5s"))
    await installation.core.finished(accepted.key, 120)
    history = await installation.core.history(accepted.key, limit=10_000)
    outcomes = {MAX.address(int(one.id)): one.outcomes["max"] for one in history.recipients}
    copies, references = installation.copies(MAX), {one.reference for one in installation.state.inbox("max")}
    assert len(outcomes) == MANY
    assert max(copies.values()) == 1, "nothing is there twice"
    wrong = [
        (address, found.status, copies[address])
        for address, found in outcomes.items()
        if (found.status is Status.SENT and not (copies[address] and found.reference in references))
        or (found.status is Status.FAILED and copies[address])
    ]
    assert wrong == []
    assert {found.status for found in outcomes.values()} == {Status.SENT, Status.FAILED, Status.UNKNOWN}
    counts = Counter(found.status for found in outcomes.values())
    # A killed courier leaves unknown what it was sending, and what it has noted since its last announcement.
    assert counts[Status.SENT] >= MANY - FAULTY - kills * 2 * CourierOptions().concurrency, counts
    await installation.audit()
