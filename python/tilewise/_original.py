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
import shutil
import stat
import tempfile
from collections.abc import Sequence
from typing import Any

from . import _library
from ._answers import Check
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
    """What the original's configs share: the names of the kernel that they describe."""

    def to_library(self) -> dict[str, Any]:
        """The library's config, in JSON form."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The kernel's name; a config that breaks rules has one as well."""
        return KernelConfig(self.to_library()).name

    @property
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


def validation(config: dict[str, Any], cls: type[Any] = ValidationResultBase) -> Any:
    """A config checked by the library, in the original's form."""
    answer: Check = check(config, fix=True)
    result = cls(is_valid=answer.valid,
                 errors=[f"{item.rule}: have {item.have}, need {item.need}" for item in answer.violations])
    if not answer.valid and answer.remaining == []:
        result.suggested_fixes = {item["field"]: item["to"] for item in answer.changes or []}
    return result


def corrected(config: dict[str, Any]) -> tuple[dict[str, Any], list[str], list[str]]:
    """The nearest valid config, each change in words, and what no change mends."""
    answer = check(config, fix=True)
    changes = [f"{item['field']}: {item['from']} -> {item['to']} ({item['rule']})" for item in answer.changes or []]
    remaining = [f"{item.rule}: have {item.have}, need {item.need}" for item in answer.remaining or []]
    return answer.corrected or config, changes, remaining


def build_libraries(configs: Sequence[dict[str, Any]], jobs: int = 0, verbose: bool = False) -> list[BuildOutcome]:
    """Builds the kernels, as many at a time as there are CPUs unless `jobs` says otherwise, and gives them their names."""
    answer = _library.call("tilewise_build", json.dumps(list(configs)), jobs)
    return [_exposed(item, verbose) for item in answer["kernels"]]


def _exposed(item: dict[str, Any], verbose: bool) -> BuildOutcome:
    if "error" in item:
        if verbose:
            print(f"  {Colors.red('failed:')} {item['kernel']}\n{item['error']['message']}")
        return BuildOutcome(item["kernel"], error=item["error"]["message"])
    config = KernelConfig(item["kernel"])
    name = library_name(config)
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


def kernel_of(path: Any) -> KernelConfig:
    """The kernel that a library made here holds."""
    beside = pathlib.Path(f"{os.fspath(path)}.json")
    if not beside.is_file():
        raise FileNotFoundError(f"{path}: no library that setup_gemm_dispatcher or setup_multiple_grouped_conv_dispatchers "
                                f"made ({beside.name} is not there); build it with one of them")
    return KernelConfig(json.loads(beside.read_text())["kernel"])
