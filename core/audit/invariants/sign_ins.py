"""The invariant of sign-ins (I25): this installation has the keys that decrypt the tokens of users. Pure.

The keys are not in Redis, so `./ada audit` checks it with those that its process has.
"""

from collections.abc import Iterable

from core.audit.invariants.invariant import Violation

_RULE = "I25"


def lost_keys(key: str, lost: Iterable[str]) -> list[Violation]:
    """Return the violations of lost keys. `key`: where the fingerprints of keys are. `lost`: those of the keys that are
    not here.
    """
    why = "give the lost key back, or `./ada sign-in reset --yes`"
    return [
        Violation(_RULE, key, f"a key {one}, which is not here", "the keys of this installation", why=why)
        for one in lost
    ]


def damaged_tokens(key: str, service: str) -> Violation:
    """Return the violation of damaged tokens. `key`: of the tokens of a user."""
    why = "the user signs in again"
    return Violation(_RULE, key, f"{service}: tokens that cannot be decrypted", "tokens", why=why)
