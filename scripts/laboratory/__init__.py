"""Experiments, benchmarks, records and their pages: not part of the installed package."""
