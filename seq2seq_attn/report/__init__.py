"""What people read: scores of test sets put together, tables, plots, attention in the terminal."""
