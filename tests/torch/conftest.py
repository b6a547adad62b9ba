# SPDX-License-Identifier: MIT
"""Fixtures of the tests of tilewise.torch. What is tested is the kernel that was chosen, not one that serves meanwhile."""
import os

import pytest
import torch
from against_torch import DEVICE

import tilewise

torch.set_num_threads(1)  # torch's threads wait busily for each other, which the tests' small tensors are not worth
os.environ.setdefault("TILEWISE_BACKGROUND", "0")


@pytest.fixture(autouse=True)
def seed():
    """The same numbers in every test, and true float32 of torch."""
    torch.manual_seed(7)
    torch.backends.cudnn.allow_tf32 = False


@pytest.fixture(scope="session")
def convolutions():
    """Skips what needs convolutions where the device has none."""
    try:
        tilewise.prepare("conv_fwd:n=1,c=8,k=8,in=4x4,filter=3x3,dtype=fp32", device=DEVICE)
    except tilewise.UnsupportedError as error:
        pytest.skip(str(error))
