"""`--device cuda` asks the contracts of variants on a GPU; `--import MODULE` asks those of a module
in place of the package's."""

import sys

import pytest
import torch

from seq2seq_attn.model.variants import import_variants
from seq2seq_attn.train.loss import OBJECTIVE
from tests.contract.chosen import MODULES, variants

AXES = (
    "encoder",
    "cell",
    "attention",
    "normalizer",
    "decoder",
    "output",
    OBJECTIVE,
)


def pytest_addoption(parser):
    """Only an initial conftest may add options: name tests/contract on the command line."""
    parser.addoption("--device", default="cpu", help="device on which the contracts are asked")
    parser.addoption(
        "--import", action="append", default=[], help="module whose variants are asked"
    )


def pytest_configure(config):
    names = config.getoption("--import", [])
    import_variants(names)
    MODULES.extend(sys.modules[name] for name in names if sys.modules[name] not in MODULES)


def pytest_collection_modifyitems(config, items):
    """With `--import`, tests of anything but its variants are left out."""
    if not MODULES:
        return
    chosen = {name for axis in AXES for name in variants(axis)}
    kept = [item for item in items if chosen & _names(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _names(item):
    """The variants that a test is about."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {
        name
        for value in values
        for name in (value if isinstance(value, tuple) else (value,))
        if type(name) is str
    }


@pytest.fixture(autouse=True)
def _default_device(request):
    """New tensors and modules are made on that device."""
    with torch.device(request.config.getoption("--device", "cpu")):
        yield
