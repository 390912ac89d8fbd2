"""Fixtures shared by all tests; this folder is on the path, so that `import naive` works."""

import os
import secrets
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

# The same examples every time, so that a run takes as long as the last, and no clock.
settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.load_profile("same")

sys.path.insert(0, str(Path(__file__).parent))

# One for all clusters that Ray begins in this process, so that no file of it is made.
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Test tensors are tiny: a second thread costs more than it gives, on a busy machine above all.

    Before each test, since packages that start numba's threads give torch as many.
    """
    torch.set_num_threads(1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """The folder of golden numbers and real data beside the checkout, or a skip."""
    folder = Path(os.environ.get("SOFTCLT_SHARED", Path(__file__).parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip("the shared folder with golden numbers and real data is not here")
    return folder
