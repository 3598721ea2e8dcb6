"""Text: reading and checking it, tokenization and detokenization."""
