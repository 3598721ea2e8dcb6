"""The machine: memory, device, precision, environment."""
