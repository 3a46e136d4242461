"""bench people: the directory and the rules of sending.

import     a CSV file with many people: the whole time, the longest script, how long another client waits
expansion  one delivery to a supergroup, compared with the same delivery with inline people
quota      what the check of a quota adds to an enqueue
"""

from argparse import ArgumentParser, Namespace

from bench.harness.parts import Parts, declare_parts, measure_parts
from bench.harness.report import Rows
from bench.people import expansion, imports, quota
from bench.people.sizes import FULL, SHORT, Sizes

PARTS: Parts[Sizes] = {
    "import": imports.measure,
    "expansion": expansion.measure,
    "quota": quota.measure,
}


def declare(parser: ArgumentParser) -> None:
    declare_parts(parser, PARTS, "everything in half a minute")


async def measure(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    await measure_parts(PARTS, arguments.parts, sizes, rows)
