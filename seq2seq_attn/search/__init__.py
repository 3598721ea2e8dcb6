"""From a model that knows the next token to whole translations."""
