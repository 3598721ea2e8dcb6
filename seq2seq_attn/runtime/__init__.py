"""Runtime: memory, device, precision, environment."""
