"""The promo codes of a rehearsed conversation, by the rules of the store (`scenarios.stores.promo`). Pure."""

from dataclasses import dataclass, field
from itertools import count

from msgspec import structs

from core.errors import Conflict
from scenarios.stores.promo import Promo


@dataclass(slots=True)
class RehearsedPromos:
    """The codes by themselves, in capitals."""

    by_code: dict[str, Promo] = field(default_factory=dict)

    def store(self, promo: Promo) -> Promo:
        """Store a code; return it, or the same one of an earlier step. Raises Conflict PROMO_TAKEN."""
        known = self.by_code.setdefault(promo.code.upper(), structs.replace(promo, id=len(self.by_code) + 1))
        if (known.name, known.user_id) != (promo.name, promo.user_id):
            raise Conflict("PROMO_TAKEN", f"the code {known.code} belongs to another promo")
        return known

    def free(self, code: str) -> str:
        """Return a sample of a random code that no promo has yet."""
        return next(one for n in count(1) if (one := code if n == 1 else f"{code}-{n}") not in self.by_code)

    def find(self, code: str) -> Promo | None:
        return self.by_code.get(code.strip().upper())

    def with_id(self, number: int | None) -> Promo | None:
        return next((one for one in self.by_code.values() if one.id == number), None)

    def change(self, promo: Promo, changed: Promo) -> Promo:
        """Replace a promo, perhaps under another code. Raises Conflict PROMO_TAKEN."""
        if changed.code.upper() != promo.code.upper() and self.find(changed.code):
            raise Conflict("PROMO_TAKEN", f"the code {changed.code} belongs to another promo")
        kept = {code: one for code, one in self.by_code.items() if one.id != promo.id}
        self.by_code = {**kept, changed.code.upper(): changed}
        return changed
