"""The verdicts of a mutation run: stored one by one, read again by the next run, and shown as a text."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.paths import ROOT
from tests.system.mutation.mutants import Mutant

WANTED = 0.85
"""The share of mutants that near-by tests must kill."""

KILLED = ("failed", "did not end")
SURVIVED = ("tests pass", "no test runs this line")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant. `by`: the test that failed, or how many passed."""

    mutant: str
    outcome: str
    by: str
    seconds: float = 0.0

    @property
    def is_killed(self) -> bool:
        return self.outcome in KILLED

    @property
    def line(self) -> str:
        word = "killed  " if self.is_killed else "SURVIVED"
        return f"{word} {self.mutant} ({self.outcome}: {self.by}; {self.seconds} s)"


class Report:
    """The verdicts on one sample of one package. A verdict counts as long as the changed file stays as it is."""

    def __init__(self, folder: Path, package: str, seed: int, mutants: Sequence[Mutant]) -> None:
        self._stored = folder / f"{package.replace('/', '.')}.jsonl"
        self._text = folder / f"{package.replace('/', '.')}-{seed}.txt"
        self._heading = f"{package}, seed {seed}"
        self._mutants = mutants
        self._keys = {mutant.name: _key(mutant) for mutant in mutants}
        self._verdicts = self._read()

    def undecided(self) -> list[Mutant]:
        """Those never tried, and those that survived: a test may have been written since."""
        return [mutant for mutant in self._mutants if not self._is_killed(mutant.name)]

    def add(self, verdict: Verdict) -> None:
        self._verdicts[verdict.mutant] = verdict
        self._stored.parent.mkdir(parents=True, exist_ok=True)
        with self._stored.open("a") as file:
            file.write(json.dumps({"key": self._keys[verdict.mutant], **asdict(verdict)}) + "\n")

    @property
    def share(self) -> float:
        """The share that was killed; what has no verdict was not killed."""
        return sum(map(self._is_killed, self._keys)) / max(1, len(self._keys))

    @property
    def summary(self) -> str:
        killed, untried = sum(map(self._is_killed, self._keys)), len(self._keys.keys() - self._verdicts.keys())
        counts = f"{killed} of {len(self._keys)} killed ({self.share:.0%})"
        return f"{self._heading}: {counts}" + (f", {untried} not tried" if untried else "")

    def text(self) -> str:
        """The summary, how many met which end, and each mutant that is left."""
        ends = Counter(verdict.outcome for verdict in self._verdicts.values())
        left = [verdict.line for verdict in self._verdicts.values() if not verdict.is_killed]
        return "\n".join([self.summary, *(f"  {count} {outcome}" for outcome, count in ends.most_common()), *left])

    def write(self) -> None:
        self._text.parent.mkdir(parents=True, exist_ok=True)
        self._text.write_text(self.text() + "\n")

    def _is_killed(self, name: str) -> bool:
        return name in self._verdicts and self._verdicts[name].is_killed

    def _read(self) -> dict[str, Verdict]:
        lines = self._stored.read_text().splitlines() if self._stored.exists() else []
        found = [json.loads(line) for line in lines]
        return {one["mutant"]: Verdict(**one) for one in found if self._keys.get(one["mutant"]) == one.pop("key")}


def _key(mutant: Mutant) -> str:
    """Changes when the file changes or the mutant stands elsewhere in it."""
    source = (ROOT / mutant.file).read_bytes()
    return f"{mutant.start} {hashlib.sha256(source).hexdigest()[:16]}"
