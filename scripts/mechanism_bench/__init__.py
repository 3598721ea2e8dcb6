"""The bench of mechanisms: every variant of every axis on the same data, one record per row, two pages."""
