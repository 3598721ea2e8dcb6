"""One thread a process: small tensors gain nothing from more, and test processes share the cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
