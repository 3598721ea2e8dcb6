"""One thread a process: small tensors gain nothing from more, and test processes share the cores. And Ctrl-C is heard:
what a shell starts in the background ignores SIGINT, and so would the processes that tests start."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")
signal.signal(signal.SIGINT, signal.default_int_handler)
