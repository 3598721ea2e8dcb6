"""Text: reading it, checking it, cutting it into tokens and putting them together again."""
