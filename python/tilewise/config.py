# SPDX-License-Identifier: MIT
"""tilewise.KernelConfig: how to compute, as an object. Fields, names, ids and rules are the library's; this only holds what
it says.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _library
from ._answers import Check, Kernel, Violation, list_of
from ._arrays import json_text


def config_text(config: str | Mapping[str, Any] | Kernel | KernelConfig) -> str:
    """The text for the library: a name, or JSON."""
    if isinstance(config, (Kernel, KernelConfig)):
        return config.name
    if isinstance(config, Mapping):
        return json_text(config)
    if not isinstance(config, str):
        raise TypeError(f"config: expected a name, JSON text, a dict, a Kernel or a KernelConfig, "
                        f"got {type(config).__name__}")
    return config


def check(config: str | Mapping[str, Any] | Kernel | KernelConfig, fix: bool = False) -> Check:
    """Checks a config, given as a kernel, a kernel's name, JSON text or a dict; fix=True also corrects it."""
    answer = _library.call("tilewise_check", config_text(config), int(bool(fix)))
    lacks = answer.get("without_code")
    return Check(valid=answer["valid"], violations=list_of(Violation, answer["violations"]), available=answer["available"],
                 without_code=Violation(**lacks) if lacks else None,
                 corrected=answer.get("corrected"), changes=answer.get("changes"),
                 remaining=list_of(Violation, answer["remaining"]) if "remaining" in answer else None)


def _text_of(value: Any) -> str:
    """A field's value as the library spells it."""
    if isinstance(value, bool):
        return str(int(value))
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


class KernelConfig:
    """A kernel's config: `KernelConfig(name)`, `KernelConfig({"op": "gemm", ...})`, or of a Kernel.

    Its fields are attributes, such as `config.tile` and `config.pipeline`; KernelConfig.fields() lists them. Two configs with
    one name are equal. A config may break rules: see check().

    name, id   the kernel's
    available  whether there is code for it
    """

    def __init__(self, config: str | Mapping[str, Any] | Kernel | KernelConfig, /):
        answer = _library.call("tilewise_find_kernel", config_text(config), None)
        self.name: str = answer["name"]
        self.id: str = answer["id"]
        self.available: bool = answer["available"]
        self.values: dict[str, Any] = answer["config"]  # those that the JSON form has

    def __getattr__(self, field: str) -> Any:
        if field.startswith("_") or "values" not in self.__dict__:
            raise AttributeError(field)
        if field in self.values:
            return self.values[field]
        try:
            return _library.call_text("tilewise_config_get", self.name, field)
        except _library.UsageError as error:
            raise AttributeError(str(error)) from None

    def replace(self, **fields: Any) -> KernelConfig:
        """Returns a copy with other values of these fields, unchecked."""
        name = self.name
        for field, value in fields.items():
            name = _library.call_text("tilewise_config_set", name, field, _text_of(value))
        return KernelConfig(name)

    def check(self, fix: bool = False) -> Check:
        """Checks the config: whether it is valid, and every rule it breaks. With fix=True also what makes it valid."""
        return check(self, fix)

    def corrected(self) -> KernelConfig:
        """Returns the nearest valid config. Raises CheckFailedError if no correction makes it valid."""
        return KernelConfig(_library.call_text("tilewise_correct", self.name))

    @staticmethod
    def fields() -> list[dict[str, str]]:
        """Every field: {"field", "type", "mark", "tag", "help"}."""
        fields: list[dict[str, str]] = _library.call("tilewise_config_fields")["fields"]
        return fields

    def to_json(self) -> str:
        return json.dumps(self.values)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"KernelConfig({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelConfig) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        return KernelConfig, (self.name,)
