"""Search: from next-token probabilities to whole translations."""
