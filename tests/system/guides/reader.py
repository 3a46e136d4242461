"""A reader who follows guides: a folder that looks like a clone, and a terminal in it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from cli.processes.embedded_valkey import free_port
from tests.support.paths import ROOT
from tests.system.guides.blocks import Block
from tests.system.guides.forks import serve_forks

HERE = Path(__file__).parent
PATIENCE = 30.0
"""Seconds for which commands are repeated."""
LIMIT = 120.0
"""Seconds that the commands of a block may take."""

API = re.compile(r"(127\.0\.0\.1|localhost):8080")


class WrongGuide(Exception):
    """A command of a guide failed, or did not print what the guide says."""


class Reader:
    """`up`: the log of an `./ada up` that runs for other readers, too, at `port`.

    `words`: what the reader writes in place of a word of the guide. `found`: words whose place the last text of this
    form takes that was printed: ids, keys.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], up: Path | None = None, port: int = 0) -> None:
        self.folder = folder
        self.words: dict[str, str] = {}
        self.found: dict[str, re.Pattern[str]] = {}
        self.port = port or free_port()
        reading, self._pipe = os.pipe()
        os.set_inheritable(reading, True)
        self._reading = reading
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
        own = {"ADA_HTTP": f"127.0.0.1:{self.port}", "PYTHONPATH": str(ROOT), "GUIDE_PYTHON": sys.executable}
        self._forks = serve_forks()
        known = {"GUIDE_ROOT": str(ROOT), "GUIDE_FORKS": str(self._forks.server_address[1])}
        self.environment = {**inherited, **own, **known, "GUIDE_PIPE": str(reading), **settings}
        if up is not None:
            self.environment["GUIDE_UP"] = str(up)
        self._furnish(up)
        self.printed = ""
        """By the last commands."""

    def _furnish(self, up: Path | None) -> None:
        self.folder.mkdir(exist_ok=True)
        links = {name: ROOT / name for name in ("core", "examples")}
        links |= {"ada": HERE / "ada.sh", ".venv": Path(sys.prefix)}
        if up is not None:
            links["data"] = up.parent / "data"
        for name, target in links.items():
            (self.folder / name).symlink_to(target)

    def close(self) -> None:
        """Ends everything that runs in the background."""
        self._forks.shutdown()
        self._forks.server_close()
        os.close(self._pipe)
        os.close(self._reading)

    def follow(self, block: Block) -> None:
        """Does what the block says. Raises WrongGuide."""
        if block.mark in ("run", "do"):
            self.run(block.text if block.mark == "run" else block.about)
        elif block.mark == "until":
            self.run_until(block.text, block.about)
        elif block.mark == "file":
            self._file(block).write_text(self._own_words(block.text))
        elif block.mark == "add to":
            with self._file(block).open("a") as file:
                file.write(self._own_words(block.text))
        elif block.mark in ("prints", "printed"):
            self.check(block.about or block.text)

    def _file(self, block: Block) -> Path:
        path = self.folder / self._own_words(block.about)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def run(self, commands: str) -> None:
        """Runs the commands; `printed` is then what they printed. Raises WrongGuide if one of them fails."""
        if self._run(commands):
            raise WrongGuide(f"failed:\n{self._own_words(commands)}\n{self.printed}")

    def run_until(self, commands: str, text: str) -> None:
        limit = time.monotonic() + PATIENCE
        while self._run(commands) or not is_in(text, self.printed):
            if time.monotonic() > limit:
                raise WrongGuide(f"“{text}” was not printed within {PATIENCE:.0f} s:\n{self.printed}")

    def _run(self, commands: str) -> int:
        script = f"source {HERE}/reader.sh\n{self._own_words(commands)}\n"
        try:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                pass_fds=(self._reading,),
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            raise WrongGuide(f"did not end within {LIMIT:.0f} s:\n{commands}") from None
        self.printed = done.stdout
        for word, pattern in self.found.items():
            if matches := pattern.findall(done.stdout):
                self.words[word] = matches[-1]
        return done.returncode

    def check(self, texts: str) -> None:
        """Raises WrongGuide unless the last commands have printed all these texts, of lines or between bars."""
        for text in re.split(r"\n| \| ", texts):
            if not is_in(self._own_words(text), self.printed):
                raise WrongGuide(f"“{text.strip()}” was not printed:\n{self.printed}")

    def _own_words(self, text: str) -> str:
        text = API.sub(rf"\1:{self.port}", text)
        for word, own in self.words.items():
            text = own.join(re.split(rf"(?<!\w){re.escape(word)}(?!\w)", text))
        return text


def is_in(text: str, printed: str) -> bool:
    """Whether the text was printed, with any other numbers, and anything for …; how many spaces does not count."""
    pattern = re.escape(" ".join(text.split())).replace("…", ".*?")
    return re.search(re.sub(r"\d+", r"\\d+", pattern), " ".join(printed.split())) is not None
