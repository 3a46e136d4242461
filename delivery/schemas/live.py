"""The query of the live stream."""

from typing import Annotated

from msgspec import Meta

from delivery.schemas.requests import RequestModel


class LiveQuery(RequestModel, frozen=True):
    """What is followed: deliveries, queue, jobs, separated by commas."""

    topics: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="deliveries, queue, jobs, separated by commas",
            extra_json_schema={"pattern": "^(deliveries|queue|jobs)(,(deliveries|queue|jobs))*$"},
        ),
    ]
