# SPDX-License-Identifier: MIT
"""tilewise.gemm on torch tensors of a GPU: types, layouts, odd sizes, alignment, batches, epilogues, against float64.
Streams, graphs, threads and forks are in test_torch_streams.py.
"""
import random as host_random

import pytest

import tilewise

torch = pytest.importorskip("torch", reason="torch is not installed")

LAYOUTS = [a + b + c for a in "rc" for b in "rc" for c in "rc"]
DTYPES = [torch.bfloat16, torch.float16, torch.float32]
SIZES = (1, 7, 33, 127, 255, 64, 256)
PROBLEMS = 8  # for each type and layout
NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


@pytest.fixture(params=DTYPES, ids=NAMES.get)
def dtype(request):
    return request.param


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return request.param


def stored(letter, x):
    """x, a matrix as written, in the order in which the layout's letter stores it."""
    return x.contiguous() if letter == "r" else x.mT.contiguous()


def written(letter, x):
    return x if letter == "r" else x.mT


def sizes_for(name):
    pick = host_random.Random(name)
    return [tuple(pick.choice(SIZES) for _ in "mnk") for _ in range(PROBLEMS)]


def test_sizes(gpu, dtype, layout):
    for m, n, k in sizes_for(f"{dtype} {layout}"):
        a, b = gpu.random(m, k, dtype=dtype), gpu.random(k, n, dtype=dtype)
        c = tilewise.gemm(stored(layout[0], a), stored(layout[1], b), layout=layout)
        assert c.dtype == dtype and c.is_cuda
        gpu.check(written(layout[2], c), a.double() @ b.double(), k)


@pytest.mark.parametrize("offset, gap", [(1, 0), (3, 5), (2, 2), (4, 4), (0, 1), (8, 8)])
def test_alignment(gpu, dtype, layout, offset, gap):
    """Operands anywhere, rows any distance apart: the gaps hold NaNs, which must neither be used nor overwritten."""
    for m, n, k in ((33, 127, 65), (64, 128, 96)):
        a, b = gpu.random(m, k, dtype=dtype), gpu.random(k, n, dtype=dtype)
        stored_c = (m, n) if layout[2] == "r" else (n, m)
        frame = torch.full((offset + stored_c[0] * (stored_c[1] + gap) + 16,), 7, device="cuda", dtype=dtype)
        out = frame[offset:offset + stored_c[0] * (stored_c[1] + gap)].view(stored_c[0], stored_c[1] + gap)
        out = out[:, :stored_c[1]]
        out.fill_(float("nan"))
        tilewise.gemm(gpu.placed(stored(layout[0], a), offset, gap), gpu.placed(stored(layout[1], b), offset, gap),
                      layout=layout, out=out)
        gpu.check(written(layout[2], out), a.double() @ b.double(), k)
        out.fill_(7)
        assert (frame == 7).all(), "written outside of out"


def test_batches(gpu, dtype, layout):
    m, n, k = 33, 70, 41
    a, b = gpu.random(5, m, k, dtype=dtype), gpu.random(5, k, n, dtype=dtype)
    c = tilewise.gemm(stored(layout[0], a), stored(layout[1], b), layout=layout)
    gpu.check(written(layout[2], c), a.double() @ b.double(), k)
    c = tilewise.gemm(stored(layout[0], a), stored(layout[1], b[0]), layout=layout)
    gpu.check(written(layout[2], c), a.double() @ b[0].double(), k)


@pytest.mark.parametrize("m, n, k", [(33, 45, 29), (128, 256, 64)])
def test_epilogues(gpu, dtype, layout, m, n, k):
    a, b, bias = gpu.random(m, k, dtype=dtype), gpu.random(k, n, dtype=dtype), gpu.random(n, dtype=dtype)
    before, d = gpu.random(m, n, dtype=dtype), gpu.random(m, n, dtype=dtype)
    operands = (stored(layout[0], a), stored(layout[1], b))
    plain = a.double() @ b.double()
    out = stored(layout[2], before).clone()
    assert tilewise.gemm(*operands, layout=layout, out=out, alpha=2, beta=0.5) is out
    gpu.check(written(layout[2], out), 2 * plain + 0.5 * before.double(), k)
    for activation, function in (("relu", torch.relu), ("gelu", torch.nn.functional.gelu),
                                 ("silu", torch.nn.functional.silu)):
        c = tilewise.gemm(*operands, layout=layout, bias=bias, activation=activation)
        gpu.check(written(layout[2], c), function(plain + bias.double()), k, more=1e-5)
    out = stored(layout[2], before).clone()
    tilewise.gemm(*operands, layout=layout, out=out, bias=bias, activation="relu", d=stored(layout[2], d), d_op="mul",
                  alpha=0.75, beta=1)
    gpu.check(written(layout[2], out), torch.relu(0.75 * plain + before.double() + bias.double()) * d.double(), k)


def test_beta_of_zero_reads_nothing(gpu, dtype):
    a, b = gpu.random(65, 33, dtype=dtype), gpu.random(31, 33, dtype=dtype)
    out = torch.full((65, 31), float("nan"), device="cuda", dtype=dtype)
    tilewise.gemm(a, b, out=out, beta=0)
    gpu.check(out, a.double() @ b.double().T, 33)


@pytest.mark.parametrize("out_dtype", DTYPES, ids=NAMES.get)
def test_output_types(gpu, dtype, out_dtype):
    a, b = gpu.random(64, 96, dtype=dtype), gpu.random(72, 96, dtype=dtype)
    try:
        c = tilewise.gemm(a, b, out_dtype=out_dtype)
    except tilewise.UnsupportedError as error:
        assert dtype != out_dtype, error
        pytest.skip(f"no kernel from {dtype} to {out_dtype}")
    assert c.dtype == out_dtype
    gpu.check(c, a.double() @ b.double().T, 96)


def test_nan_and_infinity_arrive(gpu, dtype):
    a, b = gpu.random(70, 40, dtype=dtype), gpu.random(50, 40, dtype=dtype)
    a[3, 5], a[60, 39], b[49, 0] = float("nan"), float("inf"), float("-inf")
    want = a.double() @ b.double().T
    have = tilewise.gemm(a, b).double()
    assert torch.equal(have.isnan(), want.isnan())
    assert torch.equal(have.isinf(), want.isinf()) and torch.equal(have[have.isinf()], want[want.isinf()])


def test_prepared(gpu, dtype):
    m, n, k = 100, 200, 300
    text = f"gemm:m={m},n={n},k={k},dtype={NAMES[dtype]},layout=rcr"
    prepared = tilewise.prepare(text, device="cuda")
    assert prepared.device == "cuda:0" and prepared.kernel == prepared.plan.kernel and prepared.plan.why
    a, b = gpu.random(m, k, dtype=dtype), gpu.random(n, k, dtype=dtype)
    gpu.check(prepared(a, b), a.double() @ b.double().T, k)
    out = torch.empty(m, n, device="cuda", dtype=dtype)
    assert prepared(a, b, out=out) is out
    assert torch.equal(out, tilewise.gemm(a, b, kernel=prepared.kernel))
    with pytest.raises(ValueError, match="it is on cpu, but the problem was prepared for cuda:0"):
        prepared(a.cpu(), b)
    with pytest.raises(ValueError, match="shape"):
        prepared(a[:-1], b)


def test_every_strategy(gpu, dtype):
    a, b = gpu.random(96, 160, dtype=dtype), gpu.random(224, 160, dtype=dtype)
    for strategy in ("auto", "rules", "first-fit", "measure"):
        gpu.check(tilewise.gemm(a, b, strategy=strategy), a.double() @ b.double().T, 160)


@pytest.mark.parametrize("m, n, k, batch", [(16, 640, 512, 1), (130, 200, 264, 1), (64, 96, 72, 3)])
def test_b_packed_ahead(gpu, dtype, m, n, k, batch):
    prepared = tilewise.prepare(f"gemm:m={m},n={n},k={k},batch={batch},dtype={NAMES[dtype]},layout=rcr,packed_b=1",
                                device="cuda:0")
    shape = (batch,) if batch > 1 else ()
    a, b = gpu.random(*shape, m, k, dtype=dtype), gpu.random(*shape, k, n, dtype=dtype)
    packed = prepared.pack_b(b.mT.contiguous())
    assert packed.is_cuda and packed.nbytes == prepared.packed_b_bytes
    gpu.check(prepared(a, packed), a.double() @ b.double(), k)
