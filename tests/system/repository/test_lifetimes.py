"""A key gets its lifetime in the step that writes it (`Store.write_lasting`, or a function of the server): of two
commands the second may be lost with its process or primary, and the key stays for ever.
"""

import re

from tests.support.paths import ROOT

EXPIRE = re.compile(r"\.(?:command|write)\(\s*\"P?EXPIRE(?:AT)?\"")
PACKAGES = ("core", "couriers", "delivery", "jobs", "providers", "scenarios", "cli")

ALLOWED = {
    "core/admission/idempotency.py": 1,  # extends a lifetime
    "core/audit/background.py": 1,  # one key, written again by the next audit
    "core/processes/register.py": 1,  # one key of a bot, written again by its next fault
    "core/sessions/sessions.py": 1,  # a sign-in waits for no replica; the next one sets it again
    "scenarios/stores/people.py": 1,  # the record of a person who is about to be met
    "scenarios/stores/variables.py": 1,  # as above
}


def test_no_key_gets_its_lifetime_by_a_second_command() -> None:
    found = {}
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            if count := len(EXPIRE.findall(file.read_text())):
                found[file.relative_to(ROOT).as_posix()] = count
    assert found == ALLOWED
