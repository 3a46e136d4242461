"""Plugins start in the order of their needs; a plugin that is missing or fails switches off only what depends on it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from scenarios.actions import Actions, installed_actions
from scenarios.context import Context, ScenarioServices
from scenarios.engine import Ending, State, completed, failed
from scenarios.execution.opening import ScenarioOptions, open_services
from scenarios.plugins import Platform, Plugin, installed_plugins, started
from scenarios.schema import ActionType, Attributes
from tests.scenarios.execution.conftest import Installation, bare, installation
from tests.support.stack import Stack

__all__ = ["bare", "installation"]

PACKAGE = "tests.scenarios.plugins.test_plugins"
events: list[str] = []


def opening(name: str, fault: str = "") -> Callable[[ScenarioServices], AbstractAsyncContextManager[str]]:
    @asynccontextmanager
    async def opened(services: ScenarioServices) -> AsyncIterator[str]:
        if fault:
            raise ConnectionError(fault)
        events.append(f"open {name} beside {sorted(services.plugins)}")
        yield f"the {name}"
        events.append(f"close {name}")

    return opened


WEATHER = Plugin("weather", opening("weather"), needs=("cache",))
CACHE = Plugin("cache", opening("cache"))
BROKEN = Plugin("broken", opening("broken", "no route to the server"))


async def forecast(context: Context, _: Attributes) -> Ending:
    return completed({"text": str(context.services.plugins["weather"])})


FORECAST = ActionType("forecast", "Forecasts the weather.", execute=forecast, needs=("weather",))
DEPENDENT = ActionType("dependent", "Needs what does not start.", execute=forecast, needs=("broken",))


@pytest.fixture(autouse=True)
def no_events() -> None:
    events.clear()


@pytest.fixture
async def services(stack: Stack) -> AsyncIterator[ScenarioServices]:
    async with open_services(stack.store, ScenarioOptions()) as services:
        yield services


def actions(*more: ActionType) -> Actions:
    return Actions({**installed_actions(()).types, **{one.name: one for one in more}})


@asynccontextmanager
async def platform_of(
    services: ScenarioServices, *plugins: Plugin, settings: Mapping[str, Any] | None = None
) -> AsyncIterator[Platform]:
    async with started(services, settings or {}, actions(FORECAST, DEPENDENT), plugins) as platform:
        yield platform


async def ending_of(platform: Platform, name: str, stack: Stack) -> Ending:
    """What executing an action gives; it reads nothing but the services."""
    execute = platform.types[name].execute
    assert execute is not None
    ending = await execute(Context(platform.services, *([None] * 6)), Attributes())  # type: ignore[arg-type]
    assert isinstance(ending, Ending)
    return ending


async def test_plugins_open_in_the_order_of_their_needs_and_close_in_the_opposite_one(
    services: ScenarioServices, stack: Stack
) -> None:
    async with platform_of(services, WEATHER, CACHE) as platform:
        assert await ending_of(platform, "forecast", stack) == completed({"text": "the weather"})
    assert events == ["open cache beside []", "open weather beside ['cache']", "close weather", "close cache"]


async def test_a_missing_need_switches_off_what_depends_on_it_and_the_rest_runs(
    services: ScenarioServices, stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    async with platform_of(services, WEATHER) as platform:
        ending = await ending_of(platform, "forecast", stack)
        assert platform.types["send"] is actions().types["send"]
    assert ending == failed("ACTION_OFF", "the action forecast is off: it needs weather, which is off")
    assert "weather is off: it needs cache, which is not there" in caplog.text


async def test_a_plugin_that_does_not_start_switches_off_its_actions_and_not_the_process(
    services: ScenarioServices, stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    async with platform_of(services, BROKEN, WEATHER, CACHE) as platform:
        assert str((await ending_of(platform, "dependent", stack)).error).endswith("it needs broken, which is off")
        assert (await ending_of(platform, "forecast", stack)).state is State.COMPLETED
    assert "broken is off: it does not start: ConnectionError: no route to the server" in caplog.text


async def test_without_a_token_of_telegram_only_its_actions_are_off(services: ScenarioServices, stack: Stack) -> None:
    async with platform_of(services, WEATHER, CACHE) as platform:
        ending = await ending_of(platform, "restrict", stack)
    assert ending == failed("ACTION_OFF", "the action restrict is off: it needs telegram, which is not there")
    assert {"restrict", "invite_link", "remove"} <= platform.off.keys()
    assert "send" not in platform.off


async def test_settings_switch_a_plugin_off_with_what_depends_on_it(services: ScenarioServices, stack: Stack) -> None:
    async with platform_of(services, WEATHER, CACHE, settings={"cache": {"enabled": False}}) as platform:
        assert platform.off["cache"] == "settings.yaml switches it off"
        assert platform.off["weather"] == "it needs cache, which is off"
        assert (await ending_of(platform, "forecast", stack)).state is State.FAILED
    assert events == []


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "ada.plugins")


def test_plugins_are_found_by_entry_points_and_broken_ones_are_named() -> None:
    found, broken = installed_plugins(
        [
            point("weather", f"{PACKAGE}:WEATHER"),
            point("again", f"{PACKAGE}:WEATHER"),
            point("gone", "no_such_package:PLUGIN"),
            point("wrong", f"{PACKAGE}:FORECAST"),
        ]
    )
    assert found == [WEATHER]
    assert set(broken) == {"again", "gone", "wrong"}
    assert "ModuleNotFoundError" in str(broken["gone"])


async def test_a_second_action_with_a_name_does_not_switch_off_the_first(
    services: ScenarioServices, stack: Stack
) -> None:
    broken = {"send": "there is already an action send", "dice": "dice:ACTION cannot be imported"}
    async with started(services, {}, Actions(actions().types, broken), ()) as platform:
        assert platform.types["send"] is actions().types["send"]
        assert "dice" in platform.off


async def test_settings_override_defaults_and_switch_actions_off(installation: Installation) -> None:
    installation.actions("    - {type: send, text: one}\n    - {type: user, user_state: x}\n")
    installation.write("settings.yaml", "user: {enabled: false}\nsend: {additional_text: ' and two'}\n")
    await installation.start()
    view = await installation.play()
    assert [action.state for action in view.actions] == ["completed", "failed"]
    assert view.actions[1].error == "settings.yaml switches the action user off"
    assert installation.texts == ["one and two"]
