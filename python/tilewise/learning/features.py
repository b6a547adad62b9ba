# SPDX-License-Identifier: MIT
"""The library's features of a kernel on a problem, as arrays. Nothing is computed here: what a feature is, in which order they come and
what their words stand for, says the library.
"""
from __future__ import annotations

import ctypes
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _library
from .._verbs import usage_error
from ..problem import Problem

# The original's names of operations, in which models are filed.
MODEL_OPS = {"gemm": "gemm_universal", "conv_fwd": "grouped_conv_forward", "conv_bwd_data": "grouped_conv_bwd_data",
             "conv_bwd_weight": "grouped_conv_bwd_weight"}


def ops_of(name: str) -> list[str]:
    """The operations that a name stands for: one's own, the original's, or grouped_conv for its three directions."""
    found = [op for op, filed in MODEL_OPS.items() if name in (op, filed) or filed.startswith(f"{name}_")]
    if not found:
        raise usage_error(f"unknown operation '{name}'; need one of {', '.join([*MODEL_OPS, *MODEL_OPS.values(), 'grouped_conv'])}")
    return found


def doubles(array: np.ndarray) -> Any:
    """An array as the library is given it."""
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def texts(names: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(names))(*map(_library.encode, names))


def query(arch: str | None, threads: int | None) -> str:
    return json.dumps({key: value for key, value in (("arch", arch), ("threads", threads)) if value})


@functools.cache
def kind_of(kernel: str) -> str:
    """The kind that a kernel belongs to: kernels of one kind are mistaken alike."""
    return _library.call_text("tilewise_kernel_kind", kernel)


def name_of(kernel: str | Mapping[str, Any]) -> str:
    """A kernel's name: given as it is, or a row of a table with the column kernel_name, of which nothing else counts."""
    if isinstance(kernel, str):
        return kernel
    name = kernel.get("kernel_name")
    if not isinstance(name, str):
        raise usage_error(f"a kernel without a name: {dict(kernel)}; need the name, or a row with the column kernel_name")
    return name


class FeatureEngine:
    """The features of one operation. `arch` is that of the kernels, the host's CPU unless given; `threads` matters on a CPU alone."""

    def __init__(self, op: str, arch: str | None = None, threads: int | None = None):
        schema = _library.call("tilewise_feature_schema", op)
        self.op, self.arch, self.threads = op, arch, threads
        self.names: list[str] = schema["names"]
        self.hash: str = schema["hash"]
        self.schema: int = schema["schema"]
        self.words: dict[str, list[str]] = schema["words"]
        self.categorical = [self.names[i] for i in schema["categorical"]]
        self.ranged = [self.names[i] for i in schema["ranged"]]

    def problem(self, given: str | Problem | Mapping[str, Any]) -> Problem:
        """A problem of this operation, from its text, its fields or an object."""
        problem = Problem({"op": self.op, **given} if isinstance(given, Mapping) else given)
        if problem.op != self.op:
            raise usage_error(f"{problem}: a problem of {problem.op}; these are features of {self.op}")
        return problem

    def rows(self, problem: str | Problem | Mapping[str, Any], kernels: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """A row for each kernel and its analytic time in microseconds; NaN for one that may not run the problem."""
        table = np.empty((len(kernels), len(self.names)))
        analytic_us = np.empty(len(kernels))
        _library.check("tilewise_features", self.problem(problem).text, query(self.arch, self.threads), texts(kernels), len(kernels),
                       doubles(table), doubles(analytic_us))
        return table, analytic_us

    # ---- in the original's words

    def get_feature_names(self) -> list[str]:
        return list(self.names)

    def get_categorical_features(self) -> list[str]:
        return list(self.categorical)

    def extract(self, problem: Any, kernel: str | Mapping[str, Any]) -> np.ndarray:
        """The row of one kernel."""
        row: np.ndarray = self.rows(problem, [name_of(kernel)])[0][0]
        return row

    def extract_batch(self, problem: Any, kernels: Iterable[str | Mapping[str, Any]]) -> np.ndarray:
        """A row for each kernel of a pool."""
        return self.rows(problem, [name_of(kernel) for kernel in kernels])[0]


class GemmUniversalFeatureEngine(FeatureEngine):
    """Of GEMM."""

    def __init__(self, arch: str | None = None, threads: int | None = None):
        super().__init__("gemm", arch, threads)


class GroupedConvFeatureEngine(FeatureEngine):
    """Of a direction of grouped convolution: forward, bwd_data or bwd_weight."""

    def __init__(self, direction: str = "forward", arch: str | None = None, threads: int | None = None):
        super().__init__(ops_of(f"grouped_conv_{direction}")[0], arch, threads)


