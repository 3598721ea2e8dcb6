"""Scripts of a checkout; `scripts/NAME` runs them."""
