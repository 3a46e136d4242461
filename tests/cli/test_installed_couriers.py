"""A courier of another package is one like Ada's own; a package that is broken stops only its own courier."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.settings.settings import channels, courier_module, installed_couriers, load
from core.errors import SetupError

MODULE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Settings:
    url: str = ""

async def open(settings, directory):
    raise NotImplementedError
"""
POINTS = "[ada.couriers]\npager = hospital_pager\nfax = hospital_fax\ntelex = json\nsms = hospital_pager\n"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with these couriers."""
    (tmp_path / "hospital_pager.py").write_text(MODULE)
    about = tmp_path / "hospital-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hospital\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    installed_couriers.cache_clear()
    yield
    installed_couriers.cache_clear()


@pytest.mark.row("C-79")
def test_a_courier_of_another_package_has_a_channel_and_settings() -> None:
    assert {"pager", "telegram"} <= set(channels())
    settings = load({"ADA_PAGER_URL": "http://pager"}, Path("/nonexistent")).channel("pager")
    assert settings.url == "http://pager"


@pytest.mark.row("C-79")
@pytest.mark.parametrize(("channel", "reason"), [("fax", "ModuleNotFoundError"), ("telex", "no Settings and open")])
def test_a_package_that_cannot_be_used_is_named(channel: str, reason: str) -> None:
    with pytest.raises(SetupError, match=f"the courier {channel} cannot be used: .*{reason}"):
        courier_module(channel)


def test_a_courier_of_ada_is_not_replaced() -> None:
    assert courier_module("sms").__name__ == "couriers.sms"
