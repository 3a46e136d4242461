"""bench people: the directory and the rules of sending.

import     a CSV file with many people: the whole time, the longest script, how long another client waits
expansion  one delivery to a supergroup, compared with the same delivery with inline people
quota      what the check of a quota adds to an enqueue
"""

from argparse import ArgumentParser, Namespace

from bench import Parts, declare_parts, measure_parts
from bench.harness.report import Rows
from bench.people.directory import FULL, SHORT, PeopleSizes, measure_expansion, measure_import
from bench.people.quota import measure_quota

PARTS: Parts[PeopleSizes] = {
    "import": measure_import,
    "expansion": measure_expansion,
    "quota": measure_quota,
}


def declare(parser: ArgumentParser) -> None:
    declare_parts(parser, PARTS, "everything in half a minute")


async def measure(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    await measure_parts(PARTS, arguments.parts, sizes, rows)
