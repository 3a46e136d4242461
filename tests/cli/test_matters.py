"""What needs an operator, as the verbs say it: doctor, processes, queue stats, send --wait."""

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import pytest

from cli.client.format_matters import SENTENCES, format_remedy, stops
from cli.commands.start.doctor import check_matters
from core.deliveries.channels import ChannelFacts, Channels
from core.model.content import Display
from core.monitoring.overview import MatterKind
from core.queue import NewTask, Tubes
from tests.support.forked import run_ada
from tests.support.paths import ROOT
from tests.support.stack import Stack


def test_each_kind_of_matter_has_a_sentence() -> None:
    assert set(SENTENCES) == set(MatterKind)


@pytest.mark.parametrize(
    ("matter", "line"),
    [
        (
            {"kind": "paused", "subject": "sms", "by": "root", "at": 1_796_021_478_869, "command": "./ada queue …"},
            "sms is paused since 2026-11-30 06:51:18+00:00 by root; `./ada queue …`",
        ),
        ({"kind": "unserved", "subject": "vk", "count": 1}, "no process works on 1 ready task of vk"),
        (
            {"kind": "webhook", "subject": "http://a/b", "count": 2, "reason": "status 410"},
            "http://a/b takes no messages, 2 were given up: status 410",
        ),
        (
            {"kind": "failures", "subject": "vk", "count": 5, "of": 9, "reason": "blocked", "words": "code 7"},
            "5 of 9 messages of vk did not arrive in the last hour: blocked (code 7)",
        ),
    ],
)
def test_a_matter_is_one_line_with_its_reason_and_remedy(matter: Mapping[str, Any], line: str) -> None:
    assert format_remedy(matter, UTC) == line


def test_a_message_waits_for_what_stops_its_channels_or_all() -> None:
    kinds = {"paused": "sms", "unserved": "vk", "overdue": "", "failures": "sms"}
    found = [kind for kind, subject in kinds.items() if stops({"kind": kind, "subject": subject}, frozenset({"sms"}))]
    assert found == ["paused", "overdue"]


async def test_doctor_processes_and_stats_say_why_messages_wait(stack: Stack) -> None:
    await Tubes(stack.store).pause("sms", "anna", "the gateway moves")
    await stack.queue.put("email", NewTask(""))
    for name in ("sms", "email"):
        await Channels(stack.store).register(name, ChannelFacts(100), display=Display())
    lines = {one.what: one async for one in check_matters(stack.store, UTC)}
    assert [(what, one.is_good) for what, one in lines.items()] == [("unserved", False), ("paused", None)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    for verb in (("processes",), ("queue", "stats"), ("queue", "stats", "sms")):
        printed = await asyncio.to_thread(run_ada, verb, own | {"ADA_REDIS_URL": stack.server.url}, ROOT)
        assert f"{lines['paused'].detail}; `./ada queue resume sms`" in printed.stdout
        is_named = "./ada courier email" in printed.stdout
        assert is_named == (verb[-1] != "sms")
