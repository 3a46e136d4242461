"""The active version of a bot's files in one process: loads the folder, watches it, and swaps in each good version.

Guarantees: a changed file is in force within about two seconds, without a restart (C-13). A version with mistakes is
reported, one log line for each with file, line and column, and the last good version stays active, also over a restart
(`scenarios.execution.versions`). A bot that never had a good version runs as far as it can be read, until one follows.
Reading and checking happen in a thread, so events go on.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

from core.errors import SetupError
from scenarios.action_files import paths as action_paths
from scenarios.bot import Bot
from scenarios.check import Checked, check
from scenarios.loader.files import TEXTS, LeadsOut, content, leads_out

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two readings of the folder."""

SETTLED = 0.2
"""Seconds without a change after which a file is taken to be written."""

Fingerprint = tuple[tuple[str, int, int], ...]
"""Name, time of change in ns and size of each file."""


class ActiveBot:
    """One per process and folder. `bot` and `version` belong together as long as no other coroutine runs in between.
    `is_good`: whether this version has no mistakes. `loaded_at`: since when it is in force (s). `problems`: those of
    the files as they were last read.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str] | None = None, loaded: Checked | None = None
    ) -> None:
        """Load the folder, unless it is `loaded`. `environment` fills `${NAME}`, by default the process's own. Raises
        SetupError if there is no such folder.
        """
        self.folder = folder.absolute()
        self._environment = environment
        self._shown = folder
        self._seen = fingerprint(self.folder)
        self._listeners: list[Callable[[], None]] = []
        checked = loaded or check(self.folder, environment)
        report(self._shown, checked)
        self.problems = checked.problems
        self._use(checked)

    def _use(self, checked: Checked) -> None:
        self.bot, self.loaded_at = checked.bot, time.time()
        self.version = version_of(self.folder, checked.bot)
        self.is_good = checked.is_good

    def put(self, checked: Checked) -> None:
        """Put a version in force."""
        self.problems = checked.problems
        self._use(checked)
        for listener in self._listeners:
            listener()

    def use(self, version: str, bot: Bot) -> None:
        """Put a good version of earlier in force in place of the files, which have mistakes."""
        self.version, self.bot, self.is_good = version, bot, True
        log.error("%s has mistakes; the last good version %s stays active", self._shown, version)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call this after each swap, and after the problems of the files have changed."""
        self._listeners.append(listener)

    def has_changed(self) -> bool:
        """Return whether a file was changed, added or removed since the folder was loaded, or the folder is gone."""
        try:
            return fingerprint(self.folder) != self._seen
        except (SetupError, OSError):
            return True

    async def reload_if_changed(self) -> None:
        """Load the folder if it has changed. What is wrong with it is logged."""
        try:
            await self._reload_if_changed()
        except (SetupError, OSError) as error:
            log.error("%s; the last good version stays active", error)
        except Exception:  # the bot goes on, whatever the files are
            log.exception("%s cannot be loaded; the last good version stays active", self.folder)

    async def _reload_if_changed(self) -> None:
        """Load the folder if it has changed. Raises SetupError, OSError."""
        found = await asyncio.to_thread(fingerprint, self.folder)
        if found == self._seen:
            return
        self._seen = found = await self._settled(found)
        checked = await asyncio.to_thread(check, self.folder, self._environment)
        version = await asyncio.to_thread(version_of, self.folder, checked.bot)
        has_changed = checked.problems != self.problems
        self.problems = checked.problems
        if version != self.version:
            has_changed |= self._swap(checked)
        for listener in self._listeners if has_changed else ():
            listener()

    async def _settled(self, found: Fingerprint) -> Fingerprint:
        """Wait until nothing is being written; return the last fingerprint."""
        while True:
            await asyncio.sleep(SETTLED)
            later = await asyncio.to_thread(fingerprint, self.folder)
            if later == found:
                return later
            found = later

    def _swap(self, checked: Checked) -> bool:
        """Put what was read in force if it is good; return whether it is."""
        report(self._shown, checked)
        if self.is_good and not checked.is_good:
            log.error("%s has mistakes; the last good version %s stays active", self._shown, self.version)
            return False
        self._use(checked)
        log.info("%s has changed; version %s is active", self._shown, self.version)
        return True


async def watch(bots: Callable[[], Collection[ActiveBot]], every: float = EVERY) -> None:
    """Read the folders of all bots that there are at the moment again and again, until cancelled."""
    while True:
        await asyncio.sleep(every)
        current = tuple(bots())
        for changed in await asyncio.to_thread(lambda: [bot for bot in current if bot.has_changed()]):  # noqa: B023
            await changed.reload_if_changed()


def report(folder: Path, checked: Checked) -> None:
    """Log each mistake in one line with its place. Warnings are for `./ada scenarios check`."""
    for problem in checked.problems:
        if problem.is_error:
            place = f"{folder / problem.file}:{problem.line}:{problem.column}"
            log.error("%s: %s %s", place, problem.code, problem.message)


def version_of(folder: Path, bot: Bot) -> str:
    """Names what the files say: the same for the same files and variables, in every process."""
    digest = blake2b(msgspec.json.encode(bot, order="deterministic"), digest_size=8)
    for path in yaml_files(folder):
        digest.update(str(path.relative_to(folder)).encode(errors="surrogateescape"))
        digest.update(content_of(path, folder))  # also the order of fields, which the encoding above does not have
    return digest.hexdigest()


def content_of(path: Path, folder: Path) -> bytes:
    """Return the content of a file; nothing if it cannot be read, which the check reports."""
    try:
        return content(path, folder)
    except (LeadsOut, OSError, ValueError, RuntimeError):
        return b""


def fingerprint(folder: Path) -> Fingerprint:
    """Show whether a file was changed, added or removed. Raises SetupError if there is no such folder."""
    if not folder.is_dir():
        raise SetupError(f"{folder} is not a folder; a bot is a folder with triggers.yaml and scenarios/")
    stats = [(str(path), path.stat()) for path in (*yaml_files(folder), *filter(Path.is_file, action_paths()))]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def yaml_files(folder: Path) -> list[Path]:
    """Return the files that are read, sorted."""
    scenarios = folder / "scenarios"
    below = () if leads_out(scenarios, folder) else scenarios.rglob("*.yaml")
    texts = folder / TEXTS
    of_texts = () if leads_out(texts, folder) else texts.glob("*.yaml")
    return sorted(path for path in (*folder.glob("*.yaml"), *of_texts, *below) if path.is_file())
