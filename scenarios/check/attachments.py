"""Files that an action names: they must be in the bot's folder."""

from collections.abc import Iterator
from pathlib import Path

from core.model.user_files import inner_path
from scenarios.bot.nodes import ListNode, MapNode, Node, Scalar
from scenarios.check.paths.references import is_address, names_in
from scenarios.check.step import Step
from scenarios.loader.problem import Problems
from scenarios.loader.reading import Reader
from scenarios.schema import ActionType
from scenarios.schema.types import ATTACHMENT, FILE
from scenarios.words import sentence


def check_attachments(step: Step, kind: ActionType, folder: Path, problems: Problems) -> None:
    """Check the files. A missing one is a warning, as it may be made later; a file outside the folder is an error."""
    reader = Reader(step.action.place.file, problems)
    for field in kind.fields:
        if field.type in (ATTACHMENT, FILE) and (node := step.node.get(field.name)):
            for name in names_in(tuple(files_in(node))):
                check_file(reader, name, folder)


def files_in(node: Node) -> Iterator[Node]:
    for item in node.items if isinstance(node, ListNode) else (node,):
        file = item.get("file") if isinstance(item, MapNode) else item
        if file is not None:
            yield file


def check_file(reader: Reader, name: Scalar, folder: Path) -> None:
    """Report a local file that is outside the folder or missing. A text without an ending is an id of a provider."""
    path = Path(name.text.strip())
    if is_address(name.text) or "\0" in name.text or not (path.suffix or "/" in name.text):
        return
    try:
        inside = inner_path(folder / path, folder) is not None
        missing = not (folder / path).is_file()
    except (OSError, RuntimeError):  # a name that is too long, or links in a circle
        inside, missing = True, True
    if not inside:
        reader.error(
            name, "ATTACHMENT_OUTSIDE", sentence("not_sent", text=sentence("outside_bot_folder", name=name.text))
        )
    elif missing:
        reader.warning(name, "ATTACHMENT_MISSING", sentence("no_file_bot_folder", name=name.text))
