# SPDX-License-Identifier: MIT
"""One case from its text to a verdict: operands laid out in guarded memory, a run, and every element and every byte around
it looked at."""
import ctypes
import dataclasses
import os
import shlex

import numpy as np

import judge
import reference
import values
from formats import BYTES, STORED, decode
from library import TOOLCHAIN, UNSUPPORTED, Context, Operands, Refused
from memory import CANARY, POISON, DeviceMemory, HostMemory
from problem import Problem

STYLES = values.STYLES
ALPHAS = (1.0, 1.0, 1.0, 0.5, -1.25, 2.0, 0.0)
BETAS = (1.0, 0.5, -1.0, 0.0)
FP8_SUM_BITS = 13  # of Hopper's matrix units


@dataclasses.dataclass
class Case:
    """Everything a run depends on; what is not here follows from the seed."""
    problem: str
    style: str = "normal"
    seed: int = 0
    kernel: str = ""    # by name; "": chosen by the library
    rule_set: str = ""
    strategy: str = ""
    threads: int = 1

    def arguments(self):
        """The command-line arguments that run exactly this case again."""
        words = ["--problem", self.problem, "--style", self.style, "--seed", str(self.seed), "--threads", str(self.threads)]
        for name in ("kernel", "rule_set", "strategy"):
            if getattr(self, name):
                words += ["--" + name.replace("_", "-"), getattr(self, name)]
        return shlex.join(words)


class Wrong(Exception):
    """The library did what it must not."""


class NoCode(Exception):
    """No kernel for the problem was built, and there is no compiler."""


class Machine:
    """A device under test, with its memory."""

    def __init__(self, device, arch):
        self.device, self.arch = device, arch
        self._contexts = {}
        self._memory = HostMemory()

    @property
    def is_cpu(self):
        return self.device == "cpu"

    def context(self, case):
        """One for every number of threads. An emulated device is opened for each case: the order of its threads follows
        from the seed it is opened with."""
        if not self.is_cpu:
            for context in self._contexts.values():
                context.close()
            self._contexts.clear()
            os.environ["TILEWISE_EMULATE_SEED"] = str(case.seed)
        if case.threads not in self._contexts:
            self._contexts[case.threads] = Context(self.device, self.arch, case.threads)
        return self._contexts[case.threads]

    def memory(self, context):
        return self._memory if self.is_cpu else DeviceMemory(context)


def run(machine, case):
    """Raises Wrong, or Refused where a named kernel does not take the problem. Returns the kernel that ran, "" where the
    problem was refused as it had to be."""
    problem = Problem(case.problem)
    context = machine.context(case)
    impossible = problem.impossible()
    try:
        ready = context.prepare(case.problem, case.kernel or None, case.rule_set or None, case.strategy or None)
    except Refused as refusal:
        if impossible and refusal.status == UNSUPPORTED and impossible in str(refusal):
            return ""
        if not impossible and case.kernel:
            raise
        if refusal.status == TOOLCHAIN:
            raise NoCode from refusal
        raise Wrong(f"refused, {refusal}") from refusal
    with ready:
        if impossible:
            raise Wrong(f"accepted, though impossible ({impossible})")
        memory = machine.memory(context)
        try:
            _Run(problem, case, memory, machine).check(ready)
        except Refused as refusal:
            raise Wrong(f"failed in {ready.kernel}: {refusal}") from refusal
        except Wrong as fault:
            raise Wrong(f"{fault} [{ready.kernel}]") from fault
        finally:
            memory.release()
        return ready.kernel


class _Run:
    def __init__(self, problem, case, memory, machine):
        self.problem, self.memory, self.machine = problem, memory, machine
        self.rng = np.random.default_rng(case.seed)
        self.alpha = ALPHAS[self.rng.integers(len(ALPHAS))]
        self.beta = BETAS[self.rng.integers(len(BETAS))] if problem.beta else 0.0
        # A D tensor may be C itself.
        self.in_place = f"d{self.rng.integers(problem.d_count)}" if problem.d_count and self.rng.random() < 0.2 else ""
        self.specs = problem.operands()
        self.placed, self.views = {}, {}
        for name, operand in self.specs.items():
            self._lay_out(name, operand, case.style)

    def _place(self, name, size, align):
        return self.memory.place(name, size, align, self.rng.random() < 0.7)

    def _lay_out(self, name, operand, style):
        if name == self.in_place:
            self.views[name] = self.views["c"]
            return
        placed = self._place(name, operand.bytes, max(self.problem.align, BYTES[operand.dtype]))
        placed.fill(CANARY if name == "c" else POISON)
        view = placed.elements(STORED[BYTES[operand.dtype]], operand.shape, operand.strides)
        if name == "c" and self.beta == 0 and not self.in_place:
            view[...] = (1 << 8 * BYTES[operand.dtype]) - 1
        else:
            view[...] = values.fill(self.rng, self._style(name, style), operand.dtype, operand.shape)
        placed.remember()
        self.placed[name], self.views[name] = placed, view
        self.memory.upload(placed)

    def _style(self, name, style):
        if name in ("a", "b"):
            return style
        if style == "special":
            return "special" if self.rng.random() < 0.2 else "normal"
        return "whole" if style in ("whole", "ones", "extreme") else "normal"

    def check(self, ready):
        terms = {name: self._decoded(name) for name in self.views if name != "c" or self.beta != 0}
        with np.errstate(all="ignore"):
            wanted = reference.expected(self.problem, terms["a"], terms["b"], terms, self.alpha, self.beta,
                                        0 if self.machine.is_cpu else FP8_SUM_BITS)
            self._allow_neighbours(wanted, terms)
            self._allow_beyond_outputs(wanted, terms)
            first = self._result(ready, POISON)
            got = self._decoded("c", first)
            places = judge.wrong(self.problem.out, wanted, got)
        if places.any():
            raise Wrong(judge.describe(wanted, got, places))
        if self.problem.deterministic and not np.array_equal(first, self._result(ready, 0x3c)):
            raise Wrong("deterministic=1, and a second run gives other bits")

    def _allow_neighbours(self, wanted, terms):
        """GPU kernels may compute several groups as one product, where one's infinity becomes another's NaN."""
        if self.machine.is_cpu or not self.problem.is_conv or self.problem.groups == 1:
            return
        if not (np.isfinite(terms["a"]).all() and np.isfinite(terms["b"]).all()):
            wanted.or_nan = np.ones_like(wanted.or_nan)

    def _allow_beyond_outputs(self, wanted, terms):
        """GPU kernels may walk beyond the outputs of backward weight, where dy is zero and x need not be a number."""
        if self.machine.is_cpu or self.problem.op != "conv_bwd_weight":
            return
        wanted.or_nan = wanted.or_nan | reference.beyond_outputs(self.problem, terms["b"])

    def _decoded(self, name, bits=None):
        bits = self.views[name] if bits is None else bits
        decoded = decode(self.specs[name].dtype, bits)
        return decoded if name in ("bias", "scale_a", "scale_b") else reference.natural(self.problem, name, decoded)

    def _result(self, ready, poison):
        """Runs once; the stored bits of C, with everything else as it was."""
        operands = Operands(ctypes.sizeof(Operands), alpha=self.alpha, beta=self.beta)
        for name in self.specs:
            address = self.placed["c" if name == self.in_place else name].address
            if name[0] == "d":
                operands.d[int(name[1:])] = address
            else:
                setattr(operands, name, address)
        extra = []
        if ready.workspace_bytes:
            extra.append(self._scratch("workspace", ready.workspace_bytes, 16, poison))
            operands.workspace = extra[-1].address
        if self.problem.packed_b:
            extra.append(self._scratch("packed_b", ready.packed_b_bytes, max(16, self.problem.align), poison))
            ready.pack_b(operands.b, extra[-1].address)
            operands.b = extra[-1].address
        ready.run(operands)
        self._look_around(extra)
        bits = self.views["c"].copy()
        c = self.placed["c"]
        c.window[:] = c.before
        self.memory.upload(c)
        return bits

    def _scratch(self, name, size, align, poison):
        placed = self._place(name, size, align)
        placed.fill(CANARY)
        placed.elements(np.uint8, (size,), (1,))[:] = poison
        placed.remember()
        self.memory.upload(placed)
        return placed

    def _look_around(self, extra):
        for name, placed in self.placed.items():
            self.memory.download(placed)
            if name == "c":
                now = self.views["c"].copy()
                written = placed.window.copy()
                self.views["c"][...] = self._before("c")
                place = placed.changed()
                placed.window[:] = written
                assert np.array_equal(now, self.views["c"])
            else:
                place = placed.changed()
            if place is not None:
                raise Wrong(f"byte {place} of {name} ({placed.size} bytes) was written")
        for placed in extra:
            self.memory.download(placed)
            kept = slice(placed.offset, placed.offset + placed.size)
            placed.window[kept] = placed.before[kept]
            if placed.changed() is not None:
                raise Wrong(f"byte {placed.changed()} of scratch memory ({placed.size} bytes) was written")

    def _before(self, name):
        operand, placed = self.specs[name], self.placed[name]
        width = BYTES[operand.dtype]
        return np.ndarray(operand.shape, STORED[width], placed.before, placed.offset,
                          tuple(width * stride for stride in operand.strides))


