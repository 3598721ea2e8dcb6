"""The benchmarks that wait for a GPU, in blocks: see `scripts/gpu`."""
