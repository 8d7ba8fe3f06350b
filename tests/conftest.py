"""One thread and one seed for every test, so that tests may run side by side and repeat exactly."""

import pytest
import torch
from hypothesis import settings

from tests.tiny import PADDED_ROWS, tiny_backbone, tiny_tokenizer

settings.register_profile("splade", deadline=None, max_examples=40)
settings.load_profile("splade")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def masked_lm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny untrained masked LM, for whatever loads one by name."""
    folder = tmp_path_factory.mktemp("lm")
    tiny_backbone("bert", len(tiny_tokenizer()) + PADDED_ROWS).mlm.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)
