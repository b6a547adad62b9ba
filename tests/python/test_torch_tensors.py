# SPDX-License-Identifier: MIT
"""tilewise.gemm on torch tensors: of the CPU, and of a CUDA device where there is one."""
import pytest

import tilewise

torch = pytest.importorskip("torch", reason="torch is not installed; pip install torch to run these")

M, N, K = 33, 45, 29


def cuda_works():
    """Whether torch sees a GPU and this build of the library can run kernels on it."""
    if not torch.cuda.is_available():
        return False
    try:
        tilewise.prepare("gemm:m=64,n=64,k=64,dtype=bf16", device="cuda:0")
    except tilewise.Error:
        return False
    return True


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not cuda_works(), reason="no CUDA device to run on"))]
TYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(params=DEVICES)
def device(request):
    torch.manual_seed(1)
    return request.param


def close(have, want):
    limit = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}[have.dtype]
    torch.testing.assert_close(have.double().cpu(), want.double().cpu(), rtol=limit, atol=limit)


@pytest.mark.parametrize("dtype", TYPES)
def test_product(device, dtype):
    a, b = torch.rand(M, K, device=device, dtype=dtype), torch.rand(N, K, device=device, dtype=dtype)
    c = tilewise.gemm(a, b)
    assert c.dtype == dtype and c.device == a.device and c.shape == (M, N)
    close(c, a.double() @ b.double().T)
    out = torch.full_like(c, float("nan"))
    assert tilewise.gemm(a, b, out=out) is out
    assert torch.equal(out, c)


@pytest.mark.compiles
def test_8_bit_types(device):
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        a, b = torch.rand(64, 64, device=device).to(dtype), torch.rand(64, 64, device=device).to(dtype)
        c = tilewise.gemm(a, b, out_dtype=torch.bfloat16)
        assert c.dtype == torch.bfloat16
        close(c, a.double() @ b.double().T)
    a = torch.randint(-128, 128, (64, 64), device=device, dtype=torch.int8)
    assert torch.equal(tilewise.gemm(a, a).cpu(), a.cpu().int() @ a.cpu().int().T)


def test_everything_at_once(device):
    a, b = torch.rand(3, M, K, device=device), torch.rand(K, N, device=device)
    bias, d = torch.rand(N, device=device), torch.rand(3, M, N, device=device)
    out = torch.rand(3, M, N, device=device)
    want = torch.relu(2 * a.double() @ b.double() + 0.5 * out.double() + bias.double()) * d.double()
    tilewise.gemm(a, b, layout="rrr", out=out, bias=bias, activation="relu", d=d, d_op="mul", alpha=2, beta=0.5)
    close(out, want)


def test_views(device):
    a, b = torch.rand(M, K + 3, device=device)[:, :K], torch.rand(K, N, device=device).t()
    with pytest.raises(ValueError, match=r"transposed view: give b.T and the other letter"):
        tilewise.gemm(a, b)
    close(tilewise.gemm(a, b.T, layout="rrr"), a.double() @ b.T.double())


def test_parameters_and_gradients(device):
    a, b = torch.rand(M, K, device=device), torch.nn.Parameter(torch.rand(N, K, device=device))
    with pytest.raises(ValueError, match=r"b: it requires a gradient.*b.detach\(\)"):
        tilewise.gemm(a, b)
    with torch.no_grad():
        close(tilewise.gemm(a, b), a.double() @ b.double().T)
    with pytest.raises(ValueError, match="requires a gradient"):
        tilewise.gemm(a, b)
    close(tilewise.gemm(a, b.detach()), a.double() @ b.double().T)


def test_what_is_not_a_dense_tensor():
    a = torch.ones(8, 8)
    for bad, message in ((a.to_sparse(), "to_dense"), (a.to("meta"), "device meta"), (a.double(), "float64")):
        with pytest.raises(TypeError, match=message):
            tilewise.gemm(bad, a)
        with pytest.raises(TypeError, match=message):
            tilewise.gemm(a, bad)


class Wrapped(torch.Tensor):
    """Stands for another tensor, as masked and sharded ones do."""

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        raise NotImplementedError


class Named(torch.Tensor):
    """A subclass that is its memory and no more."""


def test_tensors_that_are_more_than_memory(device):
    """After plain ones of the same shape, at every call."""
    a = torch.rand(M, M, device=device)
    close(tilewise.gemm(a, a), a.double() @ a.double().T)
    close(tilewise.gemm(a.as_subclass(Named), a), a.double() @ a.double().T)
    negative, wrapped = torch._neg_view(a), torch.Tensor._make_subclass(Wrapped, a)
    for _ in range(2):
        for bad, message in ((negative, "a: its memory holds the negative.*a.resolve_neg"),
                             (wrapped, "a: a Wrapped computes")):
            with pytest.raises(TypeError, match=message):
                tilewise.gemm(bad, a)
    close(tilewise.gemm(negative.resolve_neg(), a), -(a.double() @ a.double().T))


def test_an_output_that_overlaps_an_operand(device):
    memory, b = torch.rand(3 * M * M, device=device), torch.rand(M, M, device=device)
    a = memory[:M * M].view(M, M)
    for start in (0, 4, M * M - 4):
        with pytest.raises(tilewise.UsageError, match="the output c overlaps a"):
            tilewise.gemm(a, b, out=memory[start:start + M * M].view(M, M))
    want = a.double() @ b.double().T
    out = memory[M * M:2 * M * M].view(M, M)
    close(tilewise.gemm(a, b, out=out), want)
    close(tilewise.gemm(a, b, out=out, d=out), 2 * want)
    frame = torch.rand(M, 2 * M, device=device)
    want = frame[:, :M].double() @ b.double().T
    close(tilewise.gemm(frame[:, :M], b, out=frame[:, M:]), want)


def test_numpy_and_torch_mix_on_the_cpu():
    a, b = torch.rand(M, K), torch.rand(N, K)
    assert torch.equal(tilewise.gemm(a, b.numpy()), tilewise.gemm(a, b))


def test_devices_do_not_mix():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device to be on the other side")
    with pytest.raises(ValueError, match="b: it is on cuda:0, but a is on cpu"):
        tilewise.gemm(torch.ones(8, 8), torch.ones(8, 8, device="cuda"))


def test_prepared(device):
    prepared = tilewise.prepare(f"gemm:m={M},n={N},k={K},dtype=fp32,layout=rcr", device=torch.device(device))
    a, b = torch.rand(M, K, device=device), torch.rand(N, K, device=device)
    close(prepared(a, b), a.double() @ b.double().T)


@pytest.mark.skipif(not cuda_works(), reason="no CUDA device to run on")
def test_streams_and_graphs():
    a, b = torch.rand(256, 256, device="cuda"), torch.rand(256, 256, device="cuda")
    want = a.double() @ b.double().T
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        inside = tilewise.gemm(a, b)
    given = tilewise.gemm(a, b, stream=side)
    number = tilewise.gemm(a, b, stream=side.cuda_stream)
    side.synchronize()
    for have in (inside, given, number):
        close(have, want)
    out = torch.zeros(256, 256, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tilewise.gemm(a, b, out=out)
        made = tilewise.gemm(a, b)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    close(out, want)
    close(made, want)
