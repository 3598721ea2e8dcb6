"""What `scripts/lab bench NAME` measures, a module each, and `scripts/gpu`."""
