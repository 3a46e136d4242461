"""The query of the live stream."""

from typing import Annotated

from msgspec import Meta

from delivery.schemas.requests import RequestModel

_TOPICS = "deliveries|queue|jobs|processes|runs"


class LiveQuery(RequestModel, frozen=True):
    """The topics to follow: deliveries, queue, jobs, processes, runs, separated by commas."""

    topics: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="deliveries, queue, jobs, processes, runs, separated by commas",
            extra_json_schema={"pattern": f"^({_TOPICS})(,({_TOPICS}))*$"},
        ),
    ]
