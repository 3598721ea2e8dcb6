"""The benchmarks: one module per `scripts/lab bench NAME`, and those of `scripts/gpu`."""
