# SPDX-License-Identifier: MIT
"""Questions that need no device: listing and finding kernels, selecting one for a problem.

Only what the caller gave is passed on: what is left out has the library's default, not one of this file.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _library
from ._answers import Kernel, Plan, from_json, list_of, plan_from
from ._arrays import json_text
from .config import KernelConfig, config_text
from .problem import Problem, problem_text


def query(**given: Any) -> str:
    """Only what is given; a dtype may be one of NumPy or torch."""
    return json_text({key: value for key, value in given.items() if value is not None})


def kernels(op: str | None = None, arch: str | None = None, rule_set: str | None = None,
            dtype: str | None = None) -> list[Kernel]:
    """Lists the kernels of a rule set, for one op, arch and dtype if given."""
    answer = _library.call("tilewise_kernels", query(op=op, arch=arch, rule_set=rule_set, dtype=dtype))
    return list_of(Kernel, answer["kernels"])


def select(problem: str | Problem, *, arch: str | None = None, rule_set: str | None = None, strategy: str | None = None) -> Plan:
    """Picks the kernel for a problem, also for an arch that this machine does not have. The plan lists the other kernels that
    may run it, and those that may not, with the reason. strategy: "auto", "model" (learned), "rules" (analytic) or "first-fit"."""
    return plan_from(_library.call("tilewise_select", problem_text(problem), query(arch=arch, rule_set=rule_set, strategy=strategy)))


def find_kernel(kernel: str | Mapping[str, Any] | KernelConfig, *, op: str | None = None, arch: str | None = None,
                rule_set: str | None = None, dtype: str | None = None) -> Kernel:
    """Finds one kernel by its name or config, or by its id in a rule set."""
    answer = _library.call("tilewise_find_kernel", config_text(kernel),
                           query(op=op, arch=arch, rule_set=rule_set, dtype=dtype))
    found: Kernel = from_json(Kernel, answer)
    return found
