# SPDX-License-Identifier: MIT
"""Tests which arrays may be operands, at the first call and at later ones, which find what the first has prepared: arrays that are more
than their memory, and arrays that share memory.
"""
import ctypes

import numpy as np
import pytest

import tilewise
from tilewise import _dlpack, _entry

N = 16
W = np.ones((1, 4, 1, 1, 4), np.float32)  # of a convolution with one tap


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def random(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def product(a, b):
    return a.astype(np.float64) @ b.astype(np.float64).T


def close(have, want):
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


# ---- arrays that are more than their memory --------------------------------------------------------------------------


class Units(np.ndarray):
    """As libraries of quantities have it: operations on it mean something else."""

    def __array_ufunc__(self, *_, **__):
        return NotImplemented


class Plain(np.ndarray):
    """A subclass that changes nothing."""


def masked(x):
    return np.ma.masked_array(x, x > 0)


@pytest.mark.parametrize("wrap, message", [
    (masked, "masked arrays are not supported; use {}.filled"), (lambda x: x.view(Units), "a Units computes in its own way"),
    (lambda x: x.astype(">f4"), "order of another machine"), (lambda x: x.astype(object), "not supported"),
])
def test_arrays_that_are_more_than_memory_are_refused(rng, wrap, message):
    a, bias = random(rng, N, N), random(rng, N)
    d, out = a.copy(), np.empty((N, N), np.float32)
    prepared = tilewise.prepare(f"gemm:m={N},n={N},k={N},dtype=fp32,epilogue=bias,d=add")
    calls = {
        "a": lambda x: tilewise.gemm(x, a), "b": lambda x: tilewise.gemm(a, x), "out": lambda x: tilewise.gemm(a, a, out=x),
        "d[0]": lambda x: tilewise.gemm(a, a, d=x),
    }
    for name, call in calls.items():
        call(out if name == "out" else d)  # the same kind of memory, as an array that is no more than that
        for _ in range(2):
            with pytest.raises(TypeError, match=message.format(name).replace("[", r"\[").replace("]", r"\]")):
                call(wrap(out if name == "out" else d))
    prepared(a, a, bias=bias, d=d)
    for _ in range(2):
        with pytest.raises(TypeError, match=message.format("bias")):
            prepared(a, a, bias=wrap(bias), d=d)


@pytest.mark.compiles
def test_runs_that_copy_refuse_masks_too(rng):
    from tilewise import ctypes_utils
    a = random(rng, N, N)
    with pytest.raises(TypeError, match="a: masked"):
        tilewise.Dispatcher("cpu").run_host(f"gemm:m={N},n={N},k={N},dtype=fp32", masked(a), a)
    dispatcher = ctypes_utils.Dispatcher(lib=_one_library())
    assert dispatcher.run(a, a).success
    refused = dispatcher.run(masked(a), a)
    assert not refused.success and "masked" in refused.error


def _one_library():
    from tilewise import ctypes_utils, dispatcher_common
    kernel = tilewise.kernels(op="gemm", dtype="fp32", rule_set="tiny", arch=dispatcher_common.host_cpu_arch())[0]
    config = ctypes_utils.KernelConfig.from_library(tilewise.KernelConfig(kernel))
    return ctypes_utils.setup_gemm_dispatcher(config).lib


def test_subclasses_that_are_memory_and_no_more_are_taken(rng, tmp_path):
    a, b = random(rng, N, N), random(rng, N, N)
    on_disk = np.memmap(tmp_path / "a", np.float32, "w+", shape=(N, N))
    on_disk[:] = a
    for same in (a.view(np.matrix), a.view(Plain), on_disk):
        for _ in range(2):
            close(tilewise.gemm(same, b), product(a, b))


def test_a_read_only_output_is_refused_after_a_writable_one(rng):
    a, out = random(rng, N, N), np.empty((N, N), np.float32)
    prepared = tilewise.prepare(f"gemm:m={N},n={N},k={N},dtype=fp32")
    for run in (lambda: tilewise.gemm(a, a, out=out), lambda: prepared(a, a, out=out)):
        out.flags.writeable = True
        run()
        out.flags.writeable = False
        for _ in range(2):
            with pytest.raises(ValueError, match="out: it is read-only"):
                run()


class Exported:
    """An object whose capsule says that it holds a copy."""

    def __init__(self, x, flags):
        self.x, self.flags = x, flags

    def __dlpack__(self, **options):
        capsule = self.x.__dlpack__(max_version=(1, 0))
        pointer = _dlpack._get_pointer(capsule, b"dltensor_versioned")
        _dlpack._Versioned.from_address(pointer).flags |= self.flags
        return capsule

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_dlpack_flags_are_heeded_at_every_call(rng):
    a, out = random(rng, N, N), np.empty((N, N), np.float32)
    close(tilewise.gemm(Exported(a, 0), a, out=Exported(out, 0)).x, product(a, a))
    for _ in range(2):
        with pytest.raises(TypeError, match="hands out a copy of itself"):
            tilewise.gemm(Exported(a, 2), a, out=out)
        with pytest.raises(ValueError, match="out: it is read-only"):
            tilewise.gemm(a, a, out=Exported(out, 1))


# ---- a promise of alignment ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("align", [64, 4096])
def test_what_is_made_is_aligned_as_the_problem_promises(rng, align):
    def aligned(x):
        room = np.empty(x.nbytes + align, np.uint8)
        skip = -room.ctypes.data % align
        room[skip:skip + x.nbytes] = x.view(np.uint8).ravel()
        return room[skip:skip + x.nbytes].view(x.dtype).reshape(x.shape)

    a, b = aligned(random(rng, N, N)), aligned(random(rng, N, N))
    problem = f"gemm:m={N},n={N},k={N},dtype=fp32,align={align}"
    plain, packs = tilewise.prepare(problem), tilewise.prepare(f"{problem},packed_b=1")
    made = []  # all are kept, so that each lies elsewhere
    for _ in range(5):
        made += [plain(a, b), packs.pack_b(b)]
        close(packs(a, made[-1]), product(a, b))
    for _ in range(5):
        made.append(tilewise.Dispatcher().run_host(problem, np.array(a), np.array(b)))
        close(made[-1], product(a, b))
    assert all(x.ctypes.data % align == 0 for x in made)
    with pytest.raises(ValueError, match=f"out: its address is not a multiple of {align} bytes"):
        plain(a, b, out=np.empty(N * N + 1, np.float32)[1:].reshape(N, N))


# ---- operands that share memory --------------------------------------------------------------------------------------


def test_an_output_that_overlaps_an_operand_is_refused(rng):
    memory = random(rng, 4 * N * N)
    a, b = memory[:N * N].reshape(N, N), random(rng, N, N)
    before = memory.copy()
    prepared = tilewise.prepare(f"gemm:m={N},n={N},k={N},dtype=fp32,align=4")
    for start in (0, 1, N, N * N - 1):
        out = memory[start:start + N * N].reshape(N, N)
        for run in (lambda: tilewise.gemm(a, b, out=out), lambda: prepared(a, b, out=out),
                    lambda: tilewise.gemm(a, b, out=Exported(out, 0))):
            with pytest.raises(tilewise.UsageError, match="the output c overlaps a"):
                run()
        with pytest.raises(tilewise.UsageError, match="the output c overlaps b"):
            tilewise.gemm(b, a, out=out)
    assert np.array_equal(memory, before), "nothing was launched"
    out = memory[N * N:2 * N * N].reshape(N, N)
    close(tilewise.gemm(a, b, out=out), product(a, b))
    with pytest.raises(tilewise.UsageError, match="the output c overlaps bias"):
        tilewise.gemm(a, b, out=out, bias=memory[2 * N * N - 1:2 * N * N - 1 + N])
    with pytest.raises(tilewise.UsageError, match="the output c overlaps d0"):
        tilewise.gemm(a, b, out=out, d=memory[N * N + N:2 * N * N + N].reshape(N, N))
    x = memory[:64].reshape(1, 4, 4, 1, 4)
    with pytest.raises(tilewise.UsageError, match="the output c overlaps a"):
        tilewise.conv_forward(x, W, out=memory[4:68].reshape(1, 4, 4, 1, 4))


def test_d_may_be_the_output(rng):
    a, b, d = random(rng, N, N), random(rng, N, N), random(rng, N, N)
    for word, combine in (("add", np.add), ("mul", np.multiply)):
        out = d.copy()
        close(tilewise.gemm(a, b, out=out, d=out, d_op=word), combine(product(a, b), d))


def test_columns_of_one_array_are_operands(rng):
    frame = random(rng, N, 3 * N)
    a, b, out = frame[:, :N], frame[:, N:2 * N], frame[:, 2 * N:]
    want = product(a, b)
    before = frame.copy()
    for _ in range(2):
        close(tilewise.gemm(a, b, out=out), want)
    assert np.array_equal(frame[:, :2 * N], before[:, :2 * N])
    with pytest.raises(tilewise.UsageError, match="the output c overlaps b"):
        tilewise.gemm(a, b, out=frame[:, 2 * N - 1:-1])


@pytest.mark.compiles
def test_a_workspace_that_overlaps_is_refused(rng):
    config = {**tilewise.kernels(op="gemm", dtype="fp32")[0].config, "split_k": 4}
    a = random(rng, N, 4096)
    prepared = tilewise.prepare(f"gemm:m={N},n={N},k=4096,dtype=fp32", kernel=config)
    memory = np.zeros(prepared.workspace_bytes + a.nbytes + 64, np.uint8)
    memory = memory[-memory.ctypes.data % 16:]
    end = prepared.workspace_bytes
    inside = memory[end - 16:end - 16 + a.nbytes].view(np.float32).reshape(a.shape)
    inside[:] = a
    with pytest.raises(tilewise.UsageError, match="the workspace overlaps a"):
        prepared(inside, a, workspace=memory[:end])
    behind = memory[end:end + a.nbytes].view(np.float32).reshape(a.shape)
    behind[:] = a
    np.testing.assert_allclose(prepared(behind, a, workspace=memory[:end]), product(a, a), rtol=1e-4, atol=1e-3)


def test_refused_calls_leave_nothing_behind(rng):
    """A prepared kernel goes on after a refusal."""
    a, b = random(rng, N, N), random(rng, N, N)
    for _ in range(3):
        with pytest.raises(tilewise.UsageError):
            tilewise.gemm(a, b, out=a)
        close(tilewise.gemm(a, b, out=np.empty((N, N), np.float32)), product(a, b))
    assert _entry.entries


def test_more_memory_than_there_is():
    from tilewise import _library, _runtime
    place = ctypes.c_void_p()
    with pytest.raises(tilewise.DeviceError, match="cannot allocate"):
        _library.check("tilewise_allocate", _runtime.context("cpu"), 2 ** 64 - 1, ctypes.byref(place))
    assert not place.value
