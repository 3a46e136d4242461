"""No fixed sleeps: a test waits with `until` for what it needs, and shows with `stays` that nothing more happens."""

import re

from tests.support.paths import TESTS

SLEEP = re.compile(r"(?<!iteration\.)\bsleep\((?!0\))")  # that of a job is moved by the clock of its test

ALLOWED = {
    # Waiting itself.
    "support/waiting.py": 3,
    # Random blows and load at random moments, for minutes.
    "jobs/soak/blows.py": 4,
    "jobs/soak/people.py": 6,
    "jobs/soak/soak.py": 2,
    "system/failover/blows.py": 1,
    "system/failover/replica_set_blows.py": 2,
    "system/failover/everything.py": 3,  # the pauses between two works of a part, and between two looks
    "system/failover/failover.py": 1,
    "system/failover/senders.py": 3,
    "system/soak/nemesis.py": 3,
    "system/soak/putter.py": 1,
    "system/soak/soak.py": 1,
    "system/soak/worker.py": 1,
    # Load at a pace: puts, calls, flushes of the functions.
    "core/audit/test_live.py": 3,
    "system/failover/task_load.py": 1,
    "system/crash/test_storm_of_answers.py": 1,
    "system/crash/test_storm_of_replies.py": 1,
    "delivery/test_bulk.py": 1,
    "jobs/test_processes.py": 1,
    "core/queue/process.py": 1,
    # Jobs that block their process or take long: that is what the tests are about.
    "jobs/shop.py": 1,  # the time that a call of the shop takes
    "jobs/harmful.py": 3,
    "jobs/test_harmful_jobs.py": 1,
    "jobs/test_losses.py": 2,
    "core/queue/test_leases.py": 1,
    "core/queue/test_workers.py": 2,  # one blocks the event loop: that is what the test is about
    "core/redis/test_store.py": 1,
    # The time that a provider, a network or a receiver takes.
    "couriers/sending/test_interrupted_parcels.py": 1,
    "couriers/sending/test_throttles.py": 1,
    "couriers/relay.py": 1,
    "system/crash/cuttable_link.py": 1,
    "core/deliveries/test_tracker.py": 1,
    "jobs/service.py": 1,
    "providers/sign_in/oauth_server.py": 1,
    "jobs/test_effects.py": 1,
    "support/delivery_progress.py": 1,
    "core/webhooks/test_processes.py": 1,
    # A client that reads nothing for some time, or sends slowly.
    "delivery/test_connections.py": 2,
    # The clock of a webhook's creation.
    "core/webhooks/test_event_reader.py": 1,
}
"""File → how many sleeps it may have. The groups give the reason."""


def test_no_test_waits_for_a_fixed_time() -> None:
    found = {}
    for file in TESTS.rglob("*.py"):
        if count := len(SLEEP.findall(file.read_text())):
            found[file.relative_to(TESTS).as_posix()] = count
    assert found == ALLOWED
