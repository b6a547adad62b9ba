# SPDX-License-Identifier: MIT
"""tilewise.Registry: a set of kernels to choose from. It lives in the library; this holds its handle."""
from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _library
from ._answers import Kernel, from_json
from .api import query
from .config import KernelConfig, config_text

AnyConfig = str | Mapping[str, Any] | Kernel | KernelConfig


class Registry:
    """A set of kernels in the order of priority, then name. Registries are independent of each other, and need no device.

        registry = Registry("mine").add_rule_set(op="gemm", dtype="bf16", arch="gfx942")
        len(registry), list(registry), registry[0], registry["gemm_bf16_..."], "gemm_bf16_..." in registry
    """

    def __init__(self, name: str = "default"):
        self._handle = 0
        self.name = name
        self._handle = _library.create("tilewise_registry_create", _library.word(name, "name"))

    # Bound here: when the interpreter ends, the names of the module may be gone first.
    def __del__(self, destroy: Any = _library.function("tilewise_registry_destroy")) -> None:
        if getattr(self, "_handle", 0):
            destroy(self._handle)

    def __copy__(self) -> Registry:
        copied = Registry(self.name)
        copied.merge(self)
        return copied

    def __deepcopy__(self, _memo: Any) -> Registry:
        return self.__copy__()

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return _imported, (self.name, self.export())

    def _add(self, function: str, *arguments: Any) -> int:
        added = ctypes.c_int64()
        _library.check(function, self._handle, *arguments, ctypes.byref(added))
        return added.value

    def add(self, config: AnyConfig, priority: str | None = None) -> bool:
        """Adds one kernel. Returns False if it was there already. Refuses a config that breaks a rule. priority: low, normal
        or high."""
        return self._add("tilewise_registry_add", config_text(config), priority) > 0

    def add_rule_set(self, rule_set: str | None = None, *, op: str | None = None, arch: str | None = None,
                     dtype: str | None = None) -> Registry:
        """Adds the kernels of a rule set, as tilewise.kernels lists them, and returns the registry."""
        self._add("tilewise_registry_add_rule_set", query(rule_set=rule_set, op=op, arch=arch, dtype=dtype))
        return self

    def merge(self, other: Registry) -> int:
        """Adds the kernels of another registry and returns how many were new."""
        if not isinstance(other, Registry):
            raise TypeError(f"other: expected a Registry, got {type(other).__name__}")
        return self._add("tilewise_registry_merge", other._handle)

    def import_json(self, text: str) -> int:
        """Adds the kernels that export() wrote: all of them, or none if anything is wrong."""
        return self._add("tilewise_registry_import", _library.word(text, "text"))

    def export(self, statistics: bool = False) -> str:
        """The whole registry as JSON."""
        return json.dumps(self._export(statistics))

    def _export(self, statistics: bool = False) -> Any:
        return _library.call("tilewise_registry_export", self._handle, int(statistics))

    def clear(self) -> None:
        _library.check("tilewise_registry_clear", self._handle)

    def filter(self, keep: Callable[[Kernel], bool], name: str | None = None) -> Registry:
        """A new registry with the kernels for which keep(kernel) is true."""
        answer = self._export()
        answer["kernels"] = [item for item in answer["kernels"] if keep(from_json(Kernel, item))]
        answer["count"] = len(answer["kernels"])
        chosen = Registry(name or self.name)
        chosen.import_json(json.dumps(answer))
        return chosen

    def __len__(self) -> int:
        size: int = _library.function("tilewise_registry_size")(self._handle)
        return size

    def __iter__(self) -> Iterator[Kernel]:
        for item in self._export()["kernels"]:
            yield from_json(Kernel, item)

    def __getitem__(self, which: int | str) -> Kernel:
        """A kernel by its place, its name or its id."""
        if not isinstance(which, str):
            place = _library.whole(which, "kernel")
            place += len(self) if place < 0 else 0
            if not 0 <= place < len(self):
                raise IndexError(f"kernel {which} of {len(self)}")
            which = _library.call_text("tilewise_registry_name_at", self._handle, place)
        try:
            kernel: Kernel = from_json(Kernel, _library.call("tilewise_registry_find", self._handle, which))
        except _library.UnsupportedError as error:
            raise KeyError(str(error)) from None
        return kernel

    def __contains__(self, which: object) -> bool:
        name = getattr(which, "name", which)
        if not isinstance(name, str):
            return False
        try:
            self[name]
        except KeyError:
            return False
        return True

    def __repr__(self) -> str:
        return f"Registry({self.name!r}, <{len(self)} kernels>)"


def _imported(name: str, text: str) -> Registry:
    registry = Registry(name)
    registry.import_json(text)
    return registry
