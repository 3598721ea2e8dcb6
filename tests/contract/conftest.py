"""`--device cuda` asks the contracts of variants on a GPU."""

from collections.abc import Iterator

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    """Only an initial conftest may add options: name tests/contract on the command line."""
    parser.addoption("--device", default="cpu", help="device on which the contracts are asked")


@pytest.fixture(autouse=True)
def _default_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """New tensors and modules are made on that device."""
    with torch.device(request.config.getoption("--device", "cpu")):
        yield
