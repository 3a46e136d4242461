"""Makes the pictures of the README, docs/console.md and docs/questions.md: `python -m tools.console_pictures`.

The browser tests keep a picture of every page; the guides show some of them.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHOWN = (
    *("readme-write-ru-390", "readme-message-ru-390", "readme-messages-en-1280"),
    *("sign-in-en-light-1280", "home-of-a-teacher-ru-light-390", "write-filled-ru-390", "write-files-ru-390"),
    *(
        "write-check-ru-390",
        "message-ru-390",
        "messages-rows-en-light-1280",
        "overview-figures",
        "overview-ru-dark-390",
    ),
    *("tubes", "tasks", "task", "dead-letters", "job-paused", "processes", "keys", "webhooks", "actions"),
    *("scenario", "dry-run", "run", "person", "group", "import-changes"),
    *("message-answers-ru-390", "answer-page-ru-390"),
)


def main() -> int:
    """Return the exit code of the tests; convert the pictures if they pass."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ADA_ARTEFACTS": folder}
        tests = [sys.executable, "-m", "pytest", "-q", "tests/delivery/console"]
        code = subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode
        if code == 0:
            for name in SHOWN:
                as_webp(Path(folder) / "console" / f"{name}.png", ROOT / "docs" / "console" / f"{name}.webp")
    return code


def as_webp(picture: Path, target: Path) -> None:
    """Write it as WebP, which takes a tenth of the bytes."""
    subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-i", picture, "-quality", "80", target], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
