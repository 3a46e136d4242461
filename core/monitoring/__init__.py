"""The operators' view of a running installation: figures over time, lanes, what needs attention; and changes of many
tasks at once.
"""

from core.monitoring.bulk_changes import BulkChanges, TaskChanges, TaskCount, check_selection, check_tube
from core.monitoring.figures import FigureReader, Figures, Recorder, SampleStep
from core.monitoring.lanes import LanePage, Lanes, LongestLanes
from core.monitoring.overview import Overview, Overviews

__all__ = [
    "BulkChanges",
    "FigureReader",
    "Figures",
    "LanePage",
    "Lanes",
    "LongestLanes",
    "Overview",
    "Overviews",
    "Recorder",
    "SampleStep",
    "TaskChanges",
    "TaskCount",
    "check_selection",
    "check_tube",
]
