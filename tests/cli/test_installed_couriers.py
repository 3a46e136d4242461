"""A courier of another package is one like Ada's own; a package that is broken stops only its own courier."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import core.sentence
from cli.settings.settings import courier_module, load
from core.errors import SetupError
from core.sentence import problem
from couriers.channel import channels

MODULE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Settings:
    url: str = ""

async def open(settings, directory):
    raise NotImplementedError
"""
RECORD = """
from pathlib import Path
from couriers.channel import Channel, ReportCallback

CHANNEL = Channel(
    "beeper",
    "hospital_pager",
    account="ADA_BEEPER_URL",
    no_account=frozenset({"ADA_BEEPER_PRICE"}),
    reports=(ReportCallback("A report", "hospital_pager", profile="ADA_BEEPER_PROFILE", default_profile="bell"),),
    problems={"BEEPER_JAMMED": 409},
    sentences=Path(__file__).with_name("hospital.json"),
)
"""
POINTS = """
[ada.couriers]
pager = hospital_pager
fax = hospital_fax
telex = json
sms = hospital_pager
[ada.channels]
beeper = hospital_channel:CHANNEL
broken = hospital_nowhere:CHANNEL
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with these couriers."""
    (tmp_path / "hospital_pager.py").write_text(MODULE)
    (tmp_path / "hospital_channel.py").write_text(RECORD)
    (tmp_path / "hospital.json").write_text('{"problem.BEEPER_JAMMED": ["It is jammed", "Он заклинил."]}')
    about = tmp_path / "hospital-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hospital\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(core.sentence, "_lists", [*core.sentence._lists])
    channels.cache_clear()
    yield
    channels.cache_clear()
    core.sentence.sentences.cache_clear()


def test_a_courier_of_another_package_has_a_channel_and_settings() -> None:
    assert {"pager", "telegram"} <= set(channels())
    settings = load({"ADA_PAGER_URL": "http://pager"}, Path("/nonexistent")).channel("pager")
    assert settings.url == "http://pager"


@pytest.mark.parametrize(
    ("channel", "reason"),
    [("fax", "ModuleNotFoundError"), ("telex", "no Settings and open"), ("broken", "ModuleNotFoundError")],
)
def test_a_package_that_cannot_be_used_is_named(channel: str, reason: str) -> None:
    with pytest.raises(SetupError, match=f"the courier {channel} cannot be used: .*{reason}"):
        courier_module(channel)


def test_a_record_of_another_package_says_which_settings_are_an_account() -> None:
    assert courier_module("beeper").__name__ == "hospital_pager"
    assert load({"ADA_BEEPER_URL": "http://beeper"}, Path("/nonexistent")).has_channel("beeper")
    assert not load({"ADA_BEEPER_PRICE": "1"}, Path("/nonexistent")).has_channel("beeper")


def test_a_record_of_another_package_names_its_refusals_and_its_profile() -> None:
    record = channels()["beeper"]
    assert problem("BEEPER_JAMMED").in_language("ru") == "Он заклинил."
    profiles = {text: record.has_profile({"ADA_BEEPER_PROFILE": text}.__getitem__) for text in ("", "bell", "own")}
    assert profiles == {"": False, "bell": False, "own": True}


def test_a_courier_of_ada_is_not_replaced() -> None:
    assert courier_module("sms").__name__ == "couriers.sms.courier"
