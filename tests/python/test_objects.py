# SPDX-License-Identifier: MIT
"""Problem, KernelConfig, Registry and Dispatcher: what they hold is what the library says, also after a copy, in other
threads and in forked processes.
"""
import copy
import json
import pickle

import numpy as np
import pytest

import tilewise
from tilewise import Dispatcher, KernelConfig, Problem, Registry

GEMM = "gemm:m=24,n=40,k=56,dtype=fp32,layout=rcr"
CONV = "conv_fwd:n=2,g=2,c=8,k=12,in=8x7,filter=3x3,stride=1x1,pad=1:0x1:1,dilation=1x1,dtype=fp32,layout=nhwgc"


@pytest.fixture(scope="module")
def tiny():
    return Registry("tiny").add_rule_set("tiny", op="gemm", dtype="fp32")


# ---- Problem ---------------------------------------------------------------------------------------------------------


def test_a_problem_is_the_same_however_it_is_written():
    fields = {"m": 24, "n": 40, "k": 56, "dtype": "fp32"}
    problems = [Problem(GEMM), Problem("gemm", **fields), Problem({"op": "gemm", **fields}), Problem(Problem(GEMM)),
                pickle.loads(pickle.dumps(Problem(GEMM))), Problem(Problem(GEMM).to_json())]
    assert {str(problem) for problem in problems} == {GEMM} and len(set(problems)) == 1
    assert problems[0] != Problem(CONV) and repr(problems[0]) == f"Problem({GEMM!r})"


def test_what_follows_from_a_problem():
    gemm, conv = Problem(GEMM), Problem(CONV)
    assert (gemm.m, gemm.dtype, gemm.flops) == (24, "fp32", 2 * 24 * 40 * 56)
    assert gemm.operands["b"].shape == (40, 56) and gemm.bytes == 4 * (24 * 56 + 40 * 56 + 24 * 40)
    assert conv.output == [7, 7] and conv.operands["c"].shape == (2, 7, 7, 2, 6)
    assert conv.gemm == {"m": 2 * 49, "n": 6, "k": 36, "batch": 2}
    assert conv.replace(n=3).text == Problem(CONV, n=3).text == CONV.replace("n=2", "n=3", 1)


@pytest.mark.parametrize("call, error, message", [
    (lambda: Problem(42), TypeError, "problem: expected its text"),
    (lambda: Problem("gemm", m=1, n=1, k=1, dtype="fp33"), tilewise.UsageError, "fp33"),
    (lambda: Problem(CONV, g=3), tilewise.UnsupportedError, "groups_divide"),
    (lambda: Problem(CONV.replace("g=2", "g=3")), tilewise.UnsupportedError, "groups_divide"),
    (lambda: Problem(GEMM).colour, AttributeError, "no field 'colour'.* it has op, m, n, k"),
])
def test_wrong_problems(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_functions_take_problems():
    problem = Problem(GEMM)
    assert tilewise.select(problem).kernel == tilewise.select(GEMM).kernel
    assert tilewise.prepare(problem).problem == GEMM


# ---- KernelConfig ----------------------------------------------------------------------------------------------------


def test_a_config_says_what_the_library_says(tiny):
    kernel = tiny[0]
    config = KernelConfig(kernel)
    assert config == KernelConfig(kernel.name) == KernelConfig(kernel.config) == pickle.loads(pickle.dumps(config))
    assert (config.name, config.id, config.available) == (kernel.name, kernel.id, kernel.available)
    assert config.tile == kernel.config["tile"] and config.arch == kernel.config["arch"]
    for field in KernelConfig.fields():  # also those at their default, and none that the library does not know
        assert str(getattr(config, field["field"])) is not None
    assert json.loads(config.to_json()) == kernel.config and repr(config) == f"KernelConfig({kernel.name!r})"
    with pytest.raises(AttributeError, match="colour"):
        config.colour


def test_a_config_can_be_changed_checked_and_corrected():
    config = KernelConfig("gemm_bf16_rcr_compv4_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_dsb@gfx942")
    assert config.check() and config.corrected() == config
    other = config.replace(wave=(3, 2, 1), scheduler="interwave")
    assert other.wave == "3x2x1" and {item.rule for item in other.check().violations} >= {"wave_listed", "scheduler"}
    assert other.corrected().check().valid
    with pytest.raises(tilewise.UsageError, match="sideways"):
        config.replace(scheduler="sideways")


# ---- Registry --------------------------------------------------------------------------------------------------------


def test_a_registry_is_a_set_of_kernels(tiny):
    listed = tilewise.kernels(op="gemm", dtype="fp32", rule_set="tiny")
    assert len(tiny) == len(listed) and {kernel.name for kernel in tiny} == {kernel.name for kernel in listed}
    first = tiny[0]
    assert tiny[first.name] == tiny[first.id] == first and tiny[-1] == list(tiny)[-1]
    assert first in tiny and first.name in tiny and "nonsense" not in tiny and 7 not in tiny
    with pytest.raises(IndexError, match=f"kernel {len(tiny)} of {len(tiny)}"):
        tiny[len(tiny)]
    with pytest.raises(KeyError):
        tiny["nonsense"]
    assert repr(tiny) == f"Registry('tiny', <{len(tiny)} kernels>)"


def test_registries_are_independent_and_travel_as_json(tiny):
    copy = Registry("copy")
    assert copy.import_json(tiny.export()) == len(tiny) and len(copy) == len(tiny)
    assert not copy.add(tiny[0])
    pipeline = tiny[0].config["pipeline"]
    chosen = copy.filter(lambda kernel: kernel.config["pipeline"] == pipeline, "one pipeline")
    assert 0 < len(chosen) < len(copy) and {kernel.config["pipeline"] for kernel in chosen} == {pipeline}
    assert chosen.merge(copy) == len(copy) - len(chosen.filter(lambda kernel: kernel.config["pipeline"] == pipeline))
    copy.clear()
    assert len(copy) == 0 and len(tiny) > 0
    with pytest.raises(tilewise.Error):
        copy.import_json("{}")
    with pytest.raises(tilewise.Error):
        copy.add("gemm_bf16_rcr_compv4_cshuffle_interwave_128x128x32_3x2x1_32x32x16@gfx942")
    assert json.loads(tiny.export(statistics=True))["statistics"]


# ---- Dispatcher ------------------------------------------------------------------------------------------------------


def test_a_dispatcher_chooses_from_its_registry_and_runs(tiny):
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-1, 1, (24, 56)).astype(np.float32), rng.uniform(-1, 1, (40, 56)).astype(np.float32)
    dispatcher = Dispatcher("cpu", registry=tiny)
    plan = dispatcher.select(GEMM)
    assert plan.kernel in tiny and len(plan.candidates) + len(plan.rejected) == len(tiny)
    np.testing.assert_allclose(dispatcher.run(GEMM, a, b), a @ b.T, atol=1e-5)
    assert dispatcher.prepare(GEMM).kernel == plan.kernel
    assert dispatcher.validate(GEMM) and dispatcher.bench(GEMM).results[0].us > 0
    facts = dispatcher.describe()
    assert facts["device"] == "cpu" and facts["arch"] in plan.kernel


def test_arrays_of_the_host_are_copied_where_that_is_asked_for(tiny):
    rng = np.random.default_rng(4)
    a, b = rng.uniform(-1, 1, (24, 56)), rng.uniform(-1, 1, (40, 56))  # float64: rounded to the problem's type
    dispatcher = Dispatcher("cpu", registry=tiny)
    c, took_ms = dispatcher.time_host(GEMM, a, b, repeat=2)
    assert c.dtype == np.float32 and took_ms > 0
    np.testing.assert_allclose(c, a @ b.T, atol=1e-5)
    np.testing.assert_array_equal(dispatcher.run_host(GEMM, a, b), c)
    with pytest.raises(ValueError, match=r"a: its shape is \(56, 24\)"):
        dispatcher.run_host(GEMM, a.T, b)
    with pytest.raises(TypeError, match="a: expected numbers"):
        dispatcher.run_host(GEMM, a.astype("U8"), b)


@pytest.mark.compiles
@pytest.mark.parametrize("device", ["cpu", "emulated:sm_90a"])
@pytest.mark.parametrize("field, message", [
    ("lda=64", r"a: its strides are \(56, 1\) elements, the problem needs \(64, 1\)"),
    ("ldb=64", r"b: its strides are \(56, 1\)"), ("ldc=64", r"out: its strides are \(40, 1\)"),
])
def test_arrays_of_the_host_have_no_gaps(device, field, message):
    with pytest.raises(ValueError, match=message):  # where the device has memory of its own, a kernel would leave it
        Dispatcher(device).run_host(f"{GEMM},{field}", np.ones((24, 56)), np.ones((40, 56)))


def test_a_ranking_of_the_callers_own(tiny):
    seen = []

    def last_first(problem, names, predicted_us):
        seen.append((problem, len(names), len(predicted_us)))
        return names[::-1]

    plan = Dispatcher("cpu", registry=tiny, rank=last_first).select(GEMM)
    count = len(plan.candidates)
    assert plan.source == "callback" and seen == [(GEMM, count, count)]
    by_place = Dispatcher("cpu", registry=tiny, rank=lambda problem, names, times: [len(names) - 1]).select(GEMM)
    assert by_place.kernel == plan.kernel

    def broken(problem, names, times):
        raise LookupError("my own")

    with pytest.raises(LookupError, match="my own"):
        Dispatcher("cpu", rank=broken).select(GEMM)
    with pytest.raises(tilewise.UnsupportedError):
        Dispatcher("cpu", rank=lambda problem, names, times: []).prepare(GEMM)


def test_a_pack_is_one_path_whatever_it_is_called():
    with pytest.raises(tilewise.Error, match="/nonexistent/a:b.pack"):
        Dispatcher("cpu", packs=["/nonexistent/a:b.pack"]).prepare(GEMM)


def test_a_dispatcher_without_a_device_can_only_select():
    dispatcher = Dispatcher(None, arch="gfx942")
    assert dispatcher.select("gemm:m=64,n=64,k=64,dtype=bf16").kernel.endswith("@gfx942")
    with pytest.raises(ValueError, match="can only select"):
        dispatcher.prepare(GEMM)
    assert repr(dispatcher) == "Dispatcher(None, arch='gfx942')"


def test_no_kernel_is_a_false_plan():
    plan = Dispatcher("cpu", registry=Registry("empty")).select(GEMM)
    assert not plan and plan.kernel is None and plan.why


def test_a_dispatcher_opens_nothing_before_it_is_used():
    dispatcher = Dispatcher("cuda:7")  # none here; an error would come with the first use
    assert repr(dispatcher) == "Dispatcher('cuda:7')"


# ---- copies and pickles ----------------------------------------------------------------------------------------------


def pickled(x):
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy])
def test_a_copy_outlives_what_was_prepared(again):
    prepared = tilewise.prepare(GEMM)
    other = again(prepared)
    del prepared
    assert (other(np.ones((24, 56), np.float32), np.ones((40, 56), np.float32)) == 56).all()


def test_what_was_prepared_belongs_to_its_process():
    with pytest.raises(TypeError, match="gemm:m=24.*prepare it there"):
        pickle.dumps(tilewise.prepare(GEMM))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_copies_of_a_registry_and_its_dispatcher(tiny, again):
    registry = again(Registry("mine").add_rule_set("tiny", op="gemm", dtype="fp32"))
    assert list(registry) == list(tiny) and registry.name == "mine"
    dispatcher = Dispatcher("cpu", registry=registry)
    chosen = dispatcher.select(GEMM).kernel
    other = again(dispatcher)
    del dispatcher
    assert other.select(GEMM).kernel == chosen
    registry.clear()
    assert other.registry is registry or len(other.registry) == len(tiny)
