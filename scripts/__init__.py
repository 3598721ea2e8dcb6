"""Scripts of a checkout: benchmarks, the bottleneck experiment, the bench of mechanisms and small tools.

`scripts/NAME` runs them.
"""
