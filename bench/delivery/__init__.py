"""Benchmarks of the delivery pipeline."""
