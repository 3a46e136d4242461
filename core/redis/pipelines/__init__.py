"""Batches calls: one connection to each primary, and which of them gets the calls of a shard."""

from core.redis.pipelines.pipeline import Pipeline
from core.redis.pipelines.pipelines import LibraryLoads, Pipelines
from core.redis.pipelines.replicated_pipeline import ReplicatedPipeline

__all__ = ["LibraryLoads", "Pipeline", "Pipelines", "ReplicatedPipeline"]
