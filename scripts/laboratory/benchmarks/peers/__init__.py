"""Speed against JoeyNMT and OpenNMT-py. The peers' environments import this package: standard library only."""
