"""Two versions of examples/job-hunter: the example itself, and a copy with other steps in another order.

The copy cannot always find out whether an application exists: then the vacancy is `unknown` and not applied to again.
"""

from collections.abc import Mapping
from pathlib import Path

from examples import JOB_HUNTER

_CHANGES = {
    "query = await hunt.query()": 'await iteration.step("profiles", service.profiles)\n'
    "            query = await hunt.query()",
    'iteration.step("search", service.search, query)': 'iteration.step("found", service.search, query)',
    "iteration.step(f\"letter {vacancy['id']}\"": "iteration.step(f\"text {vacancy['id']}\"",
    "import ClientResponse, ClientSession": "import ClientError, ClientResponse, ClientSession",
    "async def has_applied(self, vacancy: str) -> bool:\n": ""
    "async def has_applied(self, vacancy: str) -> bool | None:\n"
    "        try:\n"
    "            return await self._has_applied(vacancy)\n"
    "        except ClientError:\n"
    "            return None\n\n"
    "    async def _has_applied(self, vacancy: str) -> bool:\n",
}
"""Text of the first version → text of the second one."""


def two_versions(directory: Path) -> Mapping[str, Path]:
    """The files by the name of the version; the copy is written into `directory`. Raises ValueError if the example has
    changed so that the copy would be equal.
    """
    text = JOB_HUNTER.read_text()
    for before, after in _CHANGES.items():
        if text.count(before) != 1:
            raise ValueError(f"the example does not have once: {before}")
        text = text.replace(before, after)
    directory.mkdir(parents=True)
    copy = directory / "hunting.py"
    copy.write_text(text)
    return {"first": JOB_HUNTER, "second": copy}
