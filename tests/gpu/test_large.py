# SPDX-License-Identifier: MIT
"""Tensors of more than 2^31 elements on the GPU: what lies at either end of them must be right. Skips where memory is short."""
import pytest

import tilewise

torch = pytest.importorskip("torch", reason="torch is not installed")

BEYOND = 2**31
GEMMS = [(70000, 40000, 64), (70000, 64, 40000), (64, 70000, 40000)]  # C, A, B are large
IMAGES, SIDE, CHANNELS = 33, 1024, 64  # of x and y alike
GROUPS = [1, 4, 64]
ROWS = 256  # that are looked at, at either end


@pytest.fixture
def room():
    """Skips unless so many bytes are free; gives the memory back behind a test, for other processes."""
    def need(bytes_needed):
        free = torch.cuda.mem_get_info()[0]
        if free < bytes_needed:
            pytest.skip(f"{bytes_needed >> 30} GiB of GPU memory are needed, {free >> 30} are free")

    yield need
    torch.cuda.empty_cache()


@pytest.mark.parametrize("m, n, k", GEMMS)
def test_gemm(gpu, room, m, n, k):
    room(3 * BEYOND * 4)
    a, b = gpu.random(m, k, dtype=torch.bfloat16), gpu.random(n, k, dtype=torch.bfloat16)
    assert max(m * n, m * k, n * k) > BEYOND
    c = tilewise.gemm(a, b)
    for rows in (slice(0, ROWS), slice(m - ROWS, m)) if m > ROWS else (slice(0, m),):
        for columns in (slice(0, ROWS), slice(n - ROWS, n)) if n > ROWS else (slice(0, n),):
            gpu.check(c[rows, columns], a[rows].double() @ b[columns].double().mT, k)


def as_torch(x):
    """NHWGC as a channels-last tensor of torch, in float32."""
    return x.flatten(-2).permute(0, 3, 1, 2).float()


def layer(gpu, room, groups):
    room(8 * BEYOND)
    shape = (IMAGES, SIDE, SIDE, groups, CHANNELS // groups)
    x = torch.empty(shape, device="cuda", dtype=torch.bfloat16)
    assert x.numel() > BEYOND
    for image in x:  # whole, it would take twice as much for a moment
        image.copy_(gpu.random(*shape[1:], dtype=torch.bfloat16))
    w = gpu.random(groups, CHANNELS // groups, 3, 3, CHANNELS // groups, dtype=torch.bfloat16)
    return x, w, w.flatten(0, 1).permute(0, 3, 1, 2).float()


@pytest.fixture
def without_tf32():
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize("groups", GROUPS)
def test_conv_forward(gpu, room, groups, without_tf32):
    x, w, torch_w = layer(gpu, room, groups)
    y = tilewise.conv_forward(x, w, padding=1)
    for image in (slice(0, 1), slice(IMAGES - 1, IMAGES)):
        want = torch.nn.functional.conv2d(as_torch(x[image]), torch_w, padding=1, groups=groups)
        gpu.check(y[image].flatten(-2), want.permute(0, 2, 3, 1), 9 * CHANNELS // groups)


@pytest.mark.parametrize("groups", GROUPS)
def test_conv_backward_data(gpu, room, groups, without_tf32):
    dy, w, torch_w = layer(gpu, room, groups)
    dx = tilewise.conv_backward_data(dy, w, input_size=(SIDE, SIDE), padding=1)
    for image in (slice(0, 1), slice(IMAGES - 1, IMAGES)):
        want = torch.nn.functional.conv_transpose2d(as_torch(dy[image]), torch_w, padding=1, groups=groups)
        gpu.check(dx[image].flatten(-2), want.permute(0, 2, 3, 1), 9 * CHANNELS // groups)


@pytest.mark.parametrize("groups", GROUPS[:2])
def test_conv_backward_weight(gpu, room, groups, without_tf32):
    """Most of the sum is of zeros, so that what is expected can be summed up exactly enough."""
    x, w, _ = layer(gpu, room, groups)
    dy = torch.zeros_like(x)
    ends = (0, IMAGES - 1)
    for image in ends:
        dy[image].copy_(gpu.random(*x.shape[1:], dtype=torch.bfloat16))
    dw = tilewise.conv_backward_weight(x, dy, filter_size=(3, 3), padding=1)
    shape = (CHANNELS, CHANNELS // groups, 3, 3)
    want = sum(torch.nn.grad.conv2d_weight(as_torch(x[i:i + 1]), shape, as_torch(dy[i:i + 1]), padding=1, groups=groups).double()
               for i in ends)
    error = (dw.flatten(0, 1).permute(0, 3, 1, 2).double() - want).norm() / want.norm()
    assert error < 2.0**-8, f"a relative error of {error:.3g}"
