"""Reports of evaluations: tables, pages, plots, exports, and attention in the terminal."""
