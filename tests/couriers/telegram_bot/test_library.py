"""What the import of aiogram builds."""

import subprocess
import sys

IMPORT = """
from couriers.telegram_bot.library import USED, methods, types
built = [name for name in types.__all__ if getattr(getattr(types, name), "__pydantic_complete__", False)]
print(all(model.__pydantic_complete__ for model in USED), len(built) < 50)
methods.SendVideoNote(chat_id=1, video_note="x")
"""


def test_only_the_models_that_are_used_are_built_and_another_one_fails_loudly() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
    assert done.stdout == "True True\n"
    assert "`SendVideoNote` is not fully defined" in done.stderr
