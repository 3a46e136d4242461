"""A finding of a check of the verb doctor."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of one check. `is_good` is None if there is nothing to check, for example without credentials."""

    what: str
    is_good: bool | None
    detail: str
    repair: str = ""

    def __str__(self) -> str:
        mark = {True: "good", False: "BAD ", None: "    "}[self.is_good]
        return f"{mark}  {self.what:<12} {self.detail}" + (f"\n                   {self.repair}" if self.repair else "")
