"""Open TensorBoard's event files, which a run has if TensorBoard is installed."""

import logging
from pathlib import Path
from typing import Any

from seq2seq_attn.errors import UserError
from seq2seq_attn.runtime.extras import require

log = logging.getLogger(__name__)


def open_events(folder: Path, purge_step: int | None) -> Any:
    """Return TensorBoard's writer of event files. If TensorBoard is not installed, log a warning
    and return None.

    Args:
        purge_step: update from which TensorBoard ignores the events of an earlier writer; None for
            a new run.
    """
    try:
        require("tensorboard", "tensorboard")
    except UserError as error:
        log.warning("no curves for TensorBoard: %s", error)
        return None
    from torch.utils.tensorboard import SummaryWriter  # slow to import

    return SummaryWriter(str(folder), purge_step=purge_step)
