# SPDX-License-Identifier: MIT
"""Between the original's modules (ctypes_utils, grouped_conv_utils) and the library: a config of theirs becomes one of the
library's, is checked, corrected and built, and its kernel can be found by the name that the original gives a library.

A kernel is built by the library into its cache; what is made here is a link with that name, so that nothing is judged by a
name or a time. Nothing here opens a device.
"""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import shutil
import stat
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from . import _library
from ._answers import Check
from ._compat_device import is_emulated
from .config import KernelConfig, check
from .dispatcher_common import Colors, ValidationResultBase, get_generated_kernels_dir

CACHED = "Using cached library: {}"
BUILT = "Built library: {}"


@dataclasses.dataclass
class BuildOutcome:
    """A library that is there, or the reason why not; the reason has the compiler's command and log."""

    kernel: str = ""
    path: pathlib.Path | None = None
    cached: bool = False
    error: str = ""


class NamedConfig:
    """The base of the original's configs: dicts and lists in place of fields, and the names of the kernel they describe."""

    _words: ClassVar[Mapping[str, str]] = {}  # of dicts, where a field has another name: the field's

    def to_library(self) -> dict[str, Any]:
        """The library's config, in JSON form."""
        raise NotImplementedError

    @classmethod
    def from_library(cls, config: KernelConfig) -> Any:
        raise NotImplementedError

    @classmethod
    def of(cls, config: Any) -> Any:
        """A config as it is, or of a dict: flat, or with tile_config and trait_config, whose values may be lists of one."""
        if isinstance(config, cls):
            return config
        if not isinstance(config, Mapping):
            raise TypeError(f"config: expected a {cls.__name__} or a dict, got {type(config).__name__}")
        flat = {cls._words.get(name, name): value for name, value in flattened(config).items()}
        unknown = set(flat) - {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if unknown:
            raise ValueError(f"unknown fields {', '.join(sorted(unknown))} in a {cls.__name__}")
        return cls(**flat)

    @property
    def name(self) -> str:
        """The kernel's name; a config that breaks rules has one as well."""
        return KernelConfig(self.to_library()).name

    @property
    def library_name(self) -> str:
        return library_name(KernelConfig(self.to_library()))

    def _unwrap(self) -> None:
        """Lists of one value, which the original's dicts have, become that value."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            setattr(self, field.name, single(field.name, getattr(self, field.name)))

    def _triple(self, what: str) -> str:
        return "x".join(str(getattr(self, f"{what}_{letter}")) for letter in "mnk")


def single(name: str, value: Any) -> Any:
    """The value of a list of one, or of {"values": [it]}."""
    if isinstance(value, Mapping) and set(value) == {"values"}:
        value = value["values"]
    if isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise ValueError(f"{name}: {len(value)} values; a config has one of each, so expand the lists first")
        return value[0]
    return value


def flattened(data: Mapping[str, Any]) -> dict[str, Any]:
    """A dict without its tile_config and trait_config: what is in them, in its place. Where tile_config says warp_tile_m, its
    warp_m counts waves, as in the original's files."""
    tile = dict(data.get("tile_config") or {})
    if any(f"warp_tile_{letter}" in tile for letter in "mnk"):
        for letter in "mnk":
            if f"warp_{letter}" in tile:
                tile.setdefault(f"wave_{letter}", tile.pop(f"warp_{letter}"))
    flat = {**data, **tile, **(data.get("trait_config") or {})}
    flat.pop("tile_config", None)
    flat.pop("trait_config", None)
    return {name: single(name, value) for name, value in flat.items()}


def library_name(self) -> str:
        return library_name(KernelConfig(self.to_library()))


def library_name(config: KernelConfig) -> str:
    """libdispatcher_gemm_<dtype>_<layout>_<tile>_<wave>_<warp>_<pipeline>_<epilogue>_<scheduler><other fields>_<arch>.so,
    and libdispatcher_conv_<direction>_<n>d_<dtype>_<tile>_... Everything of the config is in it, so no two share one."""
    v = config.values
    shapes = [v["tile"], v["wave"], v["warp_tile"]]
    other = config.name.split("_".join(["", *shapes]), 1)[1].replace("@", "_")  # begins with _, or is the arch alone
    if v["op"] == "gemm":
        lead = ["gemm", v["dtype"], v["layout"], *shapes, v["pipeline"], v["epilogue"], v["scheduler"]]
    else:
        lead = [v["op"], f"{v['ndim']}d", v["dtype"], *shapes, v["pipeline"], v["scheduler"], v["epilogue"], v["layout"]]
    return f"libdispatcher_{'_'.join(lead)}{other}.so"


def exposed_name(config: KernelConfig | str) -> str:
    """The name of a library that is built here: code for an emulated GPU is another than for the GPU."""
    kernel = KernelConfig(config)
    return library_name(kernel).replace(".so", "_emulated.so" if is_emulated(kernel.arch) else ".so")


def _text(item: Any) -> str:
    return f"{item.rule}: have {item.have}, need {item.need}"


@dataclasses.dataclass
class Mended:
    """A config that is valid and has code where its arch has any; what was changed for it, and what no change mends."""

    config: Any
    changes: list[str]
    remaining: list[str]


# The operation and its algorithm: a config with others would not be the one that was asked for.
_NOT_CORRECTED = ("op", "dtype", "dtype_b", "pipeline")


def mended(config: NamedConfig) -> Mended:
    """The nearest valid config. Types and pipeline stay: where the arch has none of them, that is what remains."""
    answer = check(config.to_library(), fix=True)
    changes = answer.changes or []
    if any(item["field"] in _NOT_CORRECTED for item in changes):
        lacking = answer.violations or ([answer.without_code] if answer.without_code else [])
        return Mended(config, [], [_text(item) for item in lacking])
    remaining = [_text(item) for item in answer.remaining or []]
    if not changes or answer.corrected is None:
        return Mended(config, [], remaining)
    told = [f"{item['field']}: {item['from']} -> {item['to']} ({item['rule']})" for item in changes]
    return Mended(type(config).from_library(KernelConfig(answer.corrected)), told, remaining)


def validation(config: NamedConfig, cls: type[Any] = ValidationResultBase) -> Any:
    """A config checked by the library, in the original's form."""
    answer: Check = check(config.to_library())
    result = cls(is_valid=answer.valid, errors=[_text(item) for item in answer.violations])
    if answer.valid and answer.without_code is not None:
        result.warnings = [f"there is no code for it: {_text(answer.without_code)}"]
    if not answer.valid:
        result.suggested_fixes = _fixes(config, mended(config).config)
    return result


def _fixes(given: Any, better: Any) -> dict[str, Any]:
    """The fields that differ, in the original's words; of a shape all three."""
    have, want = dataclasses.asdict(given), dataclasses.asdict(better)
    different = {name for name in want if have[name] != want[name]}
    stems = {name[:-2] for name in different if re.search(r"_[mnk]$", name)}
    fixes = {name: value for name, value in want.items() if name in different or name[:-2] in stems}
    options = fixes.pop("options", {})
    return {**fixes, **{name: value for name, value in options.items() if have["options"].get(name) != value}}


def warn_of(changes: Sequence[str], what: str) -> None:
    """Nothing is corrected in silence."""
    if changes:
        warnings.warn(f"{what} was corrected: {'; '.join(changes)}", stacklevel=3)


def build_libraries(configs: Sequence[dict[str, Any]], jobs: int | None = None, verbose: bool = False) -> list[BuildOutcome]:
    """Builds the kernels, as many at a time as there are CPUs unless `jobs` says otherwise, and gives them their names."""
    outcomes: list[BuildOutcome | None] = [None] * len(configs)
    for emulated in (False, True):  # for the device that will run them
        places = [i for i, config in enumerate(configs) if is_emulated(config["arch"]) == emulated]
        order = {"kernels": [configs[i] for i in places], "emulated": emulated}
        answer = _library.call("tilewise_build", json.dumps(order), jobs or 0) if places else {"kernels": []}
        for i, item in zip(places, answer["kernels"]):
            outcomes[i] = _exposed(item, verbose)
    return [outcome for outcome in outcomes if outcome is not None]


def _exposed(item: dict[str, Any], verbose: bool) -> BuildOutcome:
    if "error" in item:
        if verbose:
            print(f"  {Colors.red('failed:')} {item['kernel']}\n{item['error']['message']}")
        return BuildOutcome(item["kernel"], error=item["error"]["message"])
    config = KernelConfig(item["kernel"])
    name = exposed_name(config)
    path = get_generated_kernels_dir() / name
    cached = item["origin"] != "built"
    _make_private(path.parent)
    if not path.is_symlink() or os.readlink(path) != item["path"]:
        _place(path, item)
    if verbose:
        print(f"  {(CACHED if cached else BUILT).format(name)}")
    return BuildOutcome(config.name, path, cached)


def _make_private(folder: pathlib.Path) -> None:
    """Who could exchange what is in it would choose what others load by these names."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise PermissionError(f"{folder} is a link, belongs to user {info.st_uid} or may be written to by others (mode "
                              f"{stat.S_IMODE(info.st_mode):o}); remove it, or name another folder with TILEWISE_CACHE_DIR")


def _place(path: pathlib.Path, item: dict[str, Any]) -> None:
    """By renaming, so that other processes see all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-") as folder:
        new = pathlib.Path(folder)
        if item["origin"] == "private" or not os.path.realpath(item["path"]).startswith(
                os.path.realpath(path.parent.parent) + os.sep):
            shutil.copyfile(item["path"], new / "library")  # it is not in the cache and goes with this process
            (new / "library").chmod(0o600)
        else:
            os.symlink(item["path"], new / "library")
        (new / "json").write_text(json.dumps({"kernel": item["kernel"], "digest": item["digest"]}))
        (new / "json").chmod(0o600)
        os.replace(new / "json", f"{path}.json")
        os.replace(new / "library", path)


def source_of(path: pathlib.Path) -> pathlib.Path:
    """The origin of a library made here: its source, or where a pack had only code, what describes it."""
    beside = path.resolve().parent / "source.cpp"
    return beside if beside.is_file() else pathlib.Path(f"{path}.json")


def kernel_of(path: Any) -> KernelConfig:
    """The kernel that a library made here holds."""
    beside = pathlib.Path(f"{os.fspath(path)}.json")
    if not beside.is_file():
        raise FileNotFoundError(f"{path}: no library that setup_gemm_dispatcher or setup_multiple_grouped_conv_dispatchers "
                                f"made ({beside.name} is not there); build it with one of them")
    return KernelConfig(json.loads(beside.read_text())["kernel"])
