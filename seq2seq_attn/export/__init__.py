"""Export a run as graphs that other programs can run without this package."""
