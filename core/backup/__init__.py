"""Backup and restore of all data of Ada on a server: as of one moment, while others write (docs/decisions/0089).

snapshot ─▶ archive        all keys as plain data, in a compressed file that shows every damage
restore  ◀─ archive        into an empty database beside the live one; then both are swapped in one step
"""

from core.backup.archive import ArchiveFault, ArchiveHeader, ArchiveReader, ArchiveWriter, End
from core.backup.restore import check_archive, restore
from core.backup.snapshot import take_snapshot

__all__ = [
    "ArchiveFault",
    "ArchiveHeader",
    "ArchiveReader",
    "ArchiveWriter",
    "End",
    "check_archive",
    "restore",
    "take_snapshot",
]
