"""The memory of processes that live long enough to be compared with themselves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

from tests.system.crash.process import AdaProcess

_GROWTH, _SLACK_MB = 1.3, 15
_FEWEST = 9
"""Samples of a process that is judged: the first third is its start."""


class Memory:
    def __init__(self) -> None:
        self._sizes: defaultdict[str, list[float]] = defaultdict(list)

    def note(self, processes: Iterable[AdaProcess]) -> None:
        for one in processes:
            self._sizes[f"{' '.join(one.args)} ({one.pid})"].append(_megabytes(one.pid))

    def grown(self) -> Iterator[str]:
        """Emit a sentence for each process whose last third has more than its second third."""
        for name, sizes in self._sizes.items():
            third = len(sizes) // 3
            if len(sizes) >= _FEWEST:
                before, after = median(sizes[third : 2 * third]), median(sizes[-third:])
                if after > before * _GROWTH + _SLACK_MB:
                    yield f"the memory of {name} grew from {before:.0f} to {after:.0f} MB"

    def figures(self) -> Iterator[str]:
        """Emit a line for each process that has lived about as long as any: the median of each third."""
        most = max(map(len, self._sizes.values()), default=0)
        for name, sizes in self._sizes.items():
            third = len(sizes) // 3
            if third and len(sizes) > 0.9 * most:
                parts = sizes[:third], sizes[third : 2 * third], sizes[-third:]
                yield f"memory of {name}: {', '.join(f'{median(part):.0f}' for part in parts)} MB"

    @property
    def judged(self) -> int:
        """How many processes have lived long enough."""
        return sum(len(sizes) >= _FEWEST for sizes in self._sizes.values())


def _megabytes(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
