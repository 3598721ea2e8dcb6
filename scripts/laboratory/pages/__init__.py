"""From records to documents: the pages of results, README's blocks, the headers of configurations,
the pictures."""
