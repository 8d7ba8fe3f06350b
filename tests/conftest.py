"""One thread and one seed for every test, so that tests may run side by side and repeat exactly."""

import pytest
import torch
from hypothesis import settings

settings.register_profile("splade", deadline=None, max_examples=40)
settings.load_profile("splade")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
