"""Reports of evaluations: tables, pages, plots and exports."""
