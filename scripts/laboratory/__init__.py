"""Experiments, benchmarks and generated documents: all that is not in the wheel."""
