"""Experiments, benchmarks and their records: beside the package, on its public API and commands.
See `scripts/lab`."""
