"""Who stops a bot has opted out of its channel, and who starts it is in again."""

from collections.abc import Sequence

import pytest

from core.directory import Directory
from core.directory.preferences import Reach, Reachability
from core.model.people import User
from tests.core.directory.conftest import TENANT


@pytest.mark.parametrize("accounts", [["a"], ["a", "b"], ["a", "b", "c"], []], ids=len)
@pytest.mark.parametrize("before", [(), ("sms",)])
async def test_only_who_has_no_other_account_opts_out_by_stopping_the_bot(
    directory: Directory, accounts: Sequence[str], before: Sequence[str]
) -> None:
    contacts = {"echo": accounts, "sms": ["+79991112233"]} if accounts else {"sms": ["+79991112233"]}
    await directory.users.create(TENANT, User(1, contacts=contacts, opt_out=before))
    for can_be_reached in (False, False, True):
        reach = Reach("a", can_be_reached)
        await Reachability(directory, TENANT, "echo", lambda _, reach=reach: reach).note({})  # type: ignore[misc]
        (user,) = await directory.users.lookup(TENANT, [1])
        assert user
        is_out = len(accounts) == 1 and not can_be_reached
        assert list(user.opt_out) == [*before, *(["echo"] if is_out else [])]
