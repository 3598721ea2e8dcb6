"""Search: find whole translations with the next-token probabilities of a model."""
