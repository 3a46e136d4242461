"""A bot's folder that a test fills."""

from pathlib import Path
from typing import Self


class BotFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, content: str) -> Self:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return self

    def actions(self, actions: str) -> Self:
        """Write the scenario `s.main`, which any text starts."""
        self.write("triggers.yaml", 'text: {"*": s.main}')
        return self.write("scenarios/s.yaml", f"main:\n  actions:\n{actions}")
