"""Watches the price of a product: at most three alerts a day, and an order when the user says so."""

import os
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from aiohttp import ClientError, request

from jobs import ChildFailed, Iteration, Job, RetryPolicy, Schedule

SHOP = os.environ.get("SHOP_URL", "")
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
PATIENT = RetryPolicy(first=MINUTE, on=(ClientError, TimeoutError))
ONCE: Any = {"idempotent_for": DAY, "retry": PATIENT}


@dataclass
class Alerts:
    """The number of messages on a day."""

    day: date = date.min
    sent: int = 0


class Watch(Job):
    """Parameters: `product`, and `below`, the price at which the user wants to know."""

    name, schedule, state = "watch", Schedule(15 * MINUTE), Alerts

    async def run(self, iteration: Iteration) -> None:
        product, today = iteration.parameters["product"], iteration.now().date()
        price = await iteration.step("price", call, "GET", f"/products/{product}", retry=PATIENT, timeout=MINUTE)
        iteration.state = alerts = iteration.state if iteration.state.day == today else Alerts(today)
        if price >= iteration.parameters["below"] or alerts.sent == 3:
            return
        alerts.sent += 1
        await iteration.effect("alert", call, "POST", "/alerts", product, price, per_iteration=True, **ONCE)
        try:
            await iteration.wait("buy", timeout=HOUR)
            child = await iteration.start_child("order", str(iteration.number), {"order": [product, price]})
            await iteration.log(f"ordered: {await child.result(timeout=DAY)}")
        except (TimeoutError, ChildFailed) as reason:
            await iteration.log(f"not ordered: {reason}")


class Order(Job):
    """Orders a product once, and returns the number of the order. Parameters: `order`."""

    name, schedule = "order", Schedule()

    async def run(self, iteration: Iteration) -> Any:
        return await iteration.effect("order", call, "POST", "/orders", *iteration.parameters["order"], **ONCE)


async def call(method: str, path: str, *body: Any, idempotency_key: str = "") -> Any:
    headers = {"Idempotency-Key": idempotency_key}
    async with request(method, SHOP + path, json=body, headers=headers, raise_for_status=True) as response:
        return await response.json()
