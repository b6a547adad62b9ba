# SPDX-License-Identifier: MIT
"""One problem of benchmarks/gpu_epilogues.py on the GPU, whose head says how it measures: our plain product and our chains
checked, torch's ways to compute the same, and the times of all side by side. Operands, references, graphs and replays are
those of gpu_compare.py.
"""
import dataclasses
import statistics
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F

import tilewise
import gpu_conv_compare
import gpu_gemm_compare
from gpu_compare import (ACCUMULATION_A_STEP, DEVICE, OUTPUT_ROUNDING, Case, Operands, capture, count_rounds, poison, release,
                         time_replays)
from gpu_conv_compare import as_torch
from gpu_conv_problems import ConvCase
from gpu_epilogues import CHAINS, PLAIN, chain_text, group_of, output_bytes, steps_of
from gpu_gemm_compare import PEER_ERROR
from gpu_problems import read_peaks
from gpu_report import FAILED, OK, WRONG
from gpu_worker import environment as read_environment  # noqa: F401, for gpu_epilogues.py

OURS = "ours"
MOST_SETS = 16
MOST_KERNELS_A_CALL = 4  # a product and its steps
CUDNN_ENGINES = 10
ERRORS = (tilewise.Error, RuntimeError, ValueError, TypeError)  # torch's errors are RuntimeErrors


@dataclasses.dataclass
class Chained(Operands):
    bias: torch.Tensor  # a value for each column or channel
    d: torch.Tensor

    @property
    def bias_row(self) -> torch.Tensor:
        """As it is added to C."""
        return self.bias if self.c.dim() == 2 else self.bias.view(self.c.shape[-2:])


Call = Callable[[Chained], torch.Tensor]

# Each works in place. Beta finds the values of D in C.
STEPS: dict[str, Callable[[torch.Tensor, Chained], torch.Tensor]] = {
    "bias": lambda value, one: value.add_(one.bias_row),
    "relu": lambda value, one: value.relu_(),
    "gelu": lambda value, one: torch.ops.aten.gelu_(value),
    "silu": lambda value, one: F.silu(value, inplace=True),
    **dict.fromkeys(("add", "d", "beta"), lambda value, one: value.add_(one.d)),
}


def take_steps(steps: list[str], value: torch.Tensor, one: Chained) -> torch.Tensor:
    for step in steps:
        value = STEPS[step](value, one)
    return value


def kind_of(case: Case):
    return gpu_conv_compare if isinstance(case, ConvCase) else gpu_gemm_compare


def make_sets(case: Case) -> list[Chained]:
    sets = []
    for one in kind_of(case).make_sets(case)[:MOST_SETS]:
        one.b.mul_(case.k**-0.5)
        width = case.groups * case.filters if isinstance(case, ConvCase) else case.n
        bias = torch.randn(width, device=DEVICE, dtype=one.c.dtype)
        sets.append(Chained(one.a, one.b, one.c, bias, torch.randn_like(one.c)))
    return sets


def fill_output(steps: list[str], one: Chained) -> None:
    if "beta" in steps:
        one.c.copy_(one.d)
    else:
        poison(one.c)


# ---- ours ------------------------------------------------------------------------------------------------------------


def our_call(case: Case, steps: list[str], strategy: str) -> Call:
    activation = "+".join(step for step in steps if step not in ("bias", "beta", "d")) or None

    def call(one: Chained) -> torch.Tensor:
        options = {"out": one.c, "strategy": strategy, "activation": activation, "beta": 1.0 if "beta" in steps else 0.0,
                   "bias": one.bias if "bias" in steps else None, "d": [one.d] if {"add", "d"} & set(steps) else None}
        if isinstance(case, ConvCase):
            return tilewise.conv_forward(one.a, one.b, stride=case.stride, padding=case.pad, dilation=case.dilation, **options)
        return tilewise.gemm(one.a, one.b, layout=case.layout, **options)

    return call


def error_of(case: Case, found: torch.Tensor, reference: torch.Tensor) -> float:
    """The largest error in what is allowed, NaN where an element was not written: right is at most 1."""
    allowed = OUTPUT_ROUNDING[case.dtype] * reference.abs() + ACCUMULATION_A_STEP[case.dtype] * case.k**0.5
    return ((found.to(reference.dtype) - reference).abs() / allowed).max().item()


def check_ours(case: Case, chain: str, strategy: str, call: Call, products: list) -> dict:
    """The result of a chain before it is timed; products are pairs of a set and its plain product."""
    steps, errors = steps_of(chain), []
    kernel = tilewise.prepare(case.text + chain_text(chain), device=DEVICE, strategy=strategy).kernel
    for one, product in products:
        fill_output(steps, one)
        call(one)
        errors.append(error_of(case, one.c, take_steps(steps, product.clone(), one)))
    wrong = [error for error in errors if not error <= 1]
    if wrong:
        return {"status": WRONG, "kernel": kernel, "reason": f"the error is {wrong[0]:.3g} times what is allowed ({kernel})"}
    return {"status": OK, "kernel": kernel, "error": max(errors)}


# ---- the peers -------------------------------------------------------------------------------------------------------


def followed(name: str, product: Call, steps: list[str]) -> dict[str, Call]:
    """A product and then a kernel for each step."""
    return {", ".join([name, *steps]): lambda one: take_steps(steps, product(one), one)}


def gemm_peers(steps: list[str], spare: torch.Tensor) -> dict[str, Call]:
    if steps == ["beta"]:
        return {"mm, add": lambda one: one.c.add_(torch.mm(one.a, one.b.mT, out=spare)),
                "addmm": lambda one: one.c.addmm_(one.a, one.b.mT)}
    peers = followed("mm", lambda one: torch.mm(one.a, one.b.mT, out=one.c), steps)
    if steps == ["d"]:
        peers["addmm"] = lambda one: torch.addmm(one.d, one.a, one.b.mT, out=one.c)
    if steps[:1] == ["bias"]:
        peers |= followed("addmm", lambda one: torch.addmm(one.bias, one.a, one.b.mT, out=one.c), steps[1:])
        peers |= followed("linear", lambda one: F.linear(one.a, one.b, one.bias), steps[1:])
    if steps in (["bias", "relu"], ["bias", "gelu"]):
        name = {"relu": "_addmm_activation", "gelu": "_addmm_activation tanh"}[steps[1]]
        peers[name] = lambda one: torch._addmm_activation(one.bias, one.a, one.b.mT, use_gelu="gelu" in steps, out=one.c)
    return peers


def conv_peers(case: ConvCase, steps: list[str]) -> dict[str, Call]:
    geometry = (list(case.stride), list(case.pad), list(case.dilation), case.groups)

    def bind(function, *names: str) -> Call:
        """A call with x, w, the named operands and the geometry; its result is seen as our C is."""
        def call(one: Chained) -> torch.Tensor:
            more = {"none": None, "bias": one.bias, "d": as_torch(case, one.d, "y"), "one": 1.0}
            result = function(as_torch(case, one.a, "x"), as_torch(case, one.b, "w"), *(more[name] for name in names), *geometry)
            return result.permute(0, 2, 3, 1).view(case.y_shape)  # a view of channels-last memory, never a copy

        return call

    plain = bind(F.conv2d, "none")
    if steps == ["beta"]:
        return {"conv2d, add": lambda one: one.c.add_(plain(one))}
    peers = followed("conv2d", plain, steps)
    if steps[:1] == ["bias"]:
        peers |= followed("conv2d with bias", bind(F.conv2d, "bias"), steps[1:])
    if steps == ["bias", "relu"]:
        peers["cudnn_convolution_relu"] = bind(torch.cudnn_convolution_relu, "bias")
    if steps == ["bias", "add", "relu"]:
        peers["cudnn_convolution_add_relu"] = bind(torch.cudnn_convolution_add_relu, "d", "one", "bias")
    return peers


def right_peers(case: Case, steps: list[str], one: Chained, product: torch.Tensor) -> dict[str, Call]:
    """Those that can do the problem; torch rounds between its kernels, so that the error is one of the norm."""
    peers = conv_peers(case, steps) if isinstance(case, ConvCase) else gemm_peers(steps, torch.empty_like(one.c))
    reference, right = take_steps(steps, product.clone(), one), {}
    for name, call in peers.items():
        fill_output(steps, one)
        try:
            error = ((call(one).to(reference.dtype) - reference).norm() / reference.norm()).item()
        except (RuntimeError, TypeError) as failure:
            print(f"{name} cannot do {case.text}: {str(failure).splitlines()[0]}", file=sys.stderr)
            continue
        if error <= PEER_ERROR:
            right[name] = call
        else:
            print(f"{name} computes something else for {case.text}: relative error {error:.3g}", file=sys.stderr)
    return right


# ---- a problem -------------------------------------------------------------------------------------------------------


def failure_of(error: Exception) -> dict:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return {"status": FAILED, "reason": f"{type(error).__name__}: {reason}"}


def measure(case: Case, strategy: str) -> dict[str, dict]:
    """A result for each chain."""
    sets = make_sets(case)
    products = [(one, kind_of(case).make_reference(case, one)) for one in (sets[0], sets[-1])]
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, CUDNN_ENGINES
    rounds = count_rounds(case, read_peaks(*torch.cuda.get_device_capability(DEVICE)), len(sets))
    stream, graphs, results = torch.cuda.Stream(), {}, {}

    def keep(chain: str, name: str, call: Call) -> None:
        torch.cuda.synchronize()
        graphs[chain, name] = capture(stream, [lambda one=one: call(one) for one in sets], rounds)

    for chain in CHAINS:
        try:
            call = our_call(case, steps_of(chain), strategy)
            results[chain] = check_ours(case, chain, strategy, call, products)
            if results[chain]["status"] == OK:
                keep(chain, OURS, call)
                for name, peer in right_peers(case, steps_of(chain), *products[0]).items():
                    keep(chain, name, peer)
        except ERRORS as error:
            results[chain] = failure_of(error)
    launches = rounds * len(sets)
    times = time_replays(graphs, stream, launches * MOST_KERNELS_A_CALL)
    us = {key: statistics.median(found) / launches for key, found in times.items()}
    for chain, result in results.items():
        if result["status"] == OK:
            result |= {"ours_us": us[chain, OURS], "plain_us": us.get((PLAIN, OURS)),
                       "peers_us": {name: value for (of, name), value in us.items() if of == chain and name != OURS}}
    return results


def compare(case: Case, strategy: str) -> list[dict]:
    """The results of a problem, one for each chain; a failure is one too. Raises where the device no longer works."""
    release()
    torch.manual_seed(1)
    facts = {"problem": case.text, "family": case.family, "group": group_of(case), "output_bytes": output_bytes(case)}
    try:
        results = measure(case, strategy)
    except ERRORS as error:
        results = {chain: failure_of(error) for chain in CHAINS}
    return [{**facts, "chain": chain, **results[chain]} for chain in CHAINS]
