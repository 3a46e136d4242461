"""A cluster of three primaries, each with two replicas."""

from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The nodes of a file. They end with it: also idle they take 2 % of a core."""
    opened = Cluster(tmp_path_factory.mktemp("cluster"), replicas=6)
    opened.start()
    yield opened
    opened.close()


@pytest.fixture
def cluster(nodes: Cluster) -> Cluster:
    """Whole and empty."""
    nodes.empty()
    return nodes
