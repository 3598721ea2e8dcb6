"""Scripts of a checkout: benchmarks, the bottleneck experiment and small tools. `scripts/NAME` runs them."""
