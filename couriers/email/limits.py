"""Whether a limit that the server names for one recipient is a limit of the account."""

from couriers.email import MailError
from couriers.email.outcomes import is_limit, is_of_recipient, over_limit
from couriers.sending import Outcome


class EmailLimits:
    """One per courier. The account waits if two recipients in a row got such an answer, and no mail was accepted
    between them. One recipient alone never stops the channel.
    """

    def __init__(self) -> None:
        self._named_for = ""

    def accepted(self) -> None:
        self._named_for = ""

    def refused(self, address: str, error: MailError) -> Outcome | None:
        """Return the outcome if the account must wait; None if the answer concerns this recipient, or is no limit."""
        if not is_limit(error) or not is_of_recipient(error):
            return None
        is_repeated = self._named_for not in ("", address)
        self._named_for = address
        return over_limit(error) if is_repeated else None
