"""Why an iteration failed, as its user may read it. Pure.

The text of an exception may hold what the user must not see: the address of a call with its token, a row of a table. So
only errors that are written for people are shown with their text; of all others their name and the line of the job that
was carried out. The log of the process has the whole text, for the operator.
"""

from pathlib import Path
from traceback import extract_tb

from core.errors import AdaError, StoreError
from jobs.signals import Blocked

OWN_FOLDERS = (str(Path(__file__).parent), str(Path(__file__).parents[1] / "core"))


def reason_for_user(fault: BaseException) -> str:
    """Return the reason of a fault, for example `the iteration took longer than 1:00:00`, or `KeyError in hunting.py,
    line 12`.
    """
    if isinstance(fault, AdaError) and not isinstance(fault, StoreError):
        return str(fault) or type(fault).__name__
    what = str(fault) if isinstance(fault, Blocked) else type(fault).__name__
    frames = [frame for frame in extract_tb(fault.__traceback__) if not frame.filename.startswith(OWN_FOLDERS)]
    in_job = [frame for frame in frames if frame.filename == frames[0].filename]
    return f"{what} in {Path(in_job[-1].filename).name}, line {in_job[-1].lineno}" if in_job else what


def reason_for_operator(fault: BaseException) -> str:
    """Return the name of the error and its text, if it can be read: that of a foreign error may itself raise."""
    name = type(fault).__name__
    try:
        return f"{name}: {fault}" if str(fault) else name
    except Exception:  # noqa: BLE001 - foreign code
        return name
