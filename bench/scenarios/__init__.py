"""bench scenarios: bots written in YAML, beside a bare aiogram bot that does the same without a store.

latency  from an update to the request at the sandbox's Bot API: one send, and the fifth send of a chain
rate     updates per second, when many wait
steps    scripts and server commands of one step, with few and with many stored runs
waiting  what runs cost that wait for a delivery
teacher  from an update to the reply of the dialog of teachers
"""

from argparse import ArgumentParser, Namespace

from bench import Parts, declare_parts, measure_parts
from bench.harness.report import Rows
from bench.scenarios.bots import FULL, SHORT, BotSizes
from bench.scenarios.replies import measure_latency, measure_rate, measure_teacher
from bench.scenarios.runs import measure_steps, measure_waiting

PARTS: Parts[BotSizes] = {
    "latency": measure_latency,
    "rate": measure_rate,
    "steps": measure_steps,
    "waiting": measure_waiting,
    "teacher": measure_teacher,
}


def declare_scenarios(parser: ArgumentParser) -> None:
    declare_parts(parser, PARTS, "everything in a minute")


async def measure_scenarios(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    await measure_parts(PARTS, arguments.parts, sizes, rows)
