"""A real primary with two replicas and three Sentinels."""

from tests.support.replica_set.node import Node
from tests.support.replica_set.replica_set import ReplicaSet, answers

__all__ = ["Node", "ReplicaSet", "answers"]
