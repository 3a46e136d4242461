"""The price watcher, with a clock that the test moves, and a crash at every point."""

from datetime import timedelta
from typing import Any

from aiohttp import ClientError

from examples.price_watcher import watching
from examples.price_watcher.watching import Order, Watch
from jobs.testing import JobTest, try_every_crash

HOUR = timedelta(hours=1)


class Shop:
    """Answers the calls of the jobs."""

    def __init__(self, price: float) -> None:
        self.price = price

    def __call__(self, method: str, path: str, *body: Any) -> Any:
        if method == "GET":
            return self.price
        return "order 1" if path == "/orders" else None


def posts(calls: list[tuple[Any, ...]]) -> list[str]:
    return [path for method, path, *_ in calls if method == "POST"]


async def bought(test: JobTest) -> None:
    price = Shop(12)
    shop = test.double(watching, "call", price)
    await test.start("watch.42", {"product": "book", "below": 10})
    assert posts(shop.calls) == []
    price.price = 9
    await test.advance(HOUR / 3)
    assert (await test.job("watch.42")).waits_for == "the signal 'buy'"
    price.price = 12
    await test.signal("watch.42", "buy")
    await test.advance(HOUR)
    assert posts(shop.calls) == ["/alerts", "/orders"]
    assert "ordered: order 1" in await test.log("watch.42")


async def test_an_offer_is_ordered_once_when_the_user_says_so_whatever_crashes() -> None:
    await try_every_crash(bought, Watch, Order)


async def test_there_are_three_alerts_a_day() -> None:
    async with JobTest.open(Watch, Order) as test:
        shop = test.double(watching, "call", Shop(9))
        await test.start("watch.42", {"product": "book", "below": 10})
        await test.advance(12 * HOUR)
        assert posts(shop.calls) == ["/alerts"] * 3
        await test.advance(24 * HOUR)
        assert posts(shop.calls) == ["/alerts"] * 6


async def test_a_shop_that_is_down_is_asked_again() -> None:
    async with JobTest.open(Watch, Order) as test:
        shop = test.double(watching, "call", ClientError("down"))
        await test.start("watch.42", {"product": "book", "below": 10})
        shop.answer = Shop(9)
        await test.advance(2 * timedelta(minutes=1))
        assert posts(shop.calls) == ["/alerts"]
