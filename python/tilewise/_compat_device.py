# SPDX-License-Identifier: MIT
"""Where the original's runners run: TILEWISE_COMPAT_DEVICE names a device, as for the original's C functions; without it the
GPU here is meant, or the CPU where there is none.
"""
from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys

from ._library import DeviceError, has_raised_rights, variable
from .api import kernels

_DEVICE_ERROR = 5  # the library's code for a device that is missing
_EMULATED = "emulated:"


def _amd_arch() -> str | None:
    for path in sorted(pathlib.Path("/sys/class/kfd/kfd/topology/nodes").glob("*/properties")):
        facts = dict(line.split(maxsplit=1) for line in path.read_text().splitlines() if " " in line)
        version = int(facts.get("gfx_target_version", 0))  # 90402 is gfx942; 0 is a CPU
        if version:
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return None


@functools.lru_cache(maxsize=8)
def _nvidia_arch(device: str = "cuda:0") -> str | None:
    if not os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/dxg"):
        return None
    # In a process of its own: this one may fork later, which a process that has opened a GPU must not.
    code = f"import tilewise; print(tilewise.Dispatcher({device!r}).describe()['arch'])"
    path = os.pathsep.join([os.fspath(pathlib.Path(__file__).resolve().parents[1]), variable("PYTHONPATH")])
    inherited = {} if has_raised_rights() else os.environ
    asked = subprocess.run([sys.executable, "-c", code], env={**inherited, "PYTHONPATH": path}, capture_output=True,
                           text=True)
    return asked.stdout.strip() or None if asked.returncode == 0 else None


@functools.lru_cache(maxsize=1)
def host_cpu_arch() -> str:
    """The arch of the CPU here, such as cpu-avx512."""
    return str(kernels(op="gemm", dtype="fp32", rule_set="tiny")[0].config["arch"])


def compat_device() -> str:
    """The device that TILEWISE_COMPAT_DEVICE names; empty: whichever there is."""
    given = variable("TILEWISE_COMPAT_DEVICE")
    return "" if given == "auto" else given


def arch_of(device: str) -> str:
    """The arch of a device by its name; a DeviceError where there is no such device. Opens nothing in this process."""
    kind = device.split(":")[0]
    found = (device[len(_EMULATED):] if device.startswith(_EMULATED) else host_cpu_arch() if device == "cpu"
             else _nvidia_arch(device) if kind == "cuda" else _amd_arch() if kind == "hip" else None)
    if not found:
        raise DeviceError(_DEVICE_ERROR, f"there is no device {device!r} here; name cpu, cuda:0 or, for a GPU that is not "
                                         "here, emulated:sm_90a (TILEWISE_COMPAT_DEVICE or --device)")
    return found


def default_arch() -> str:
    """Where the runners run unless told otherwise: TILEWISE_COMPAT_DEVICE, else the GPU here, else the CPU."""
    named = compat_device()
    return arch_of(named) if named else _amd_arch() or _nvidia_arch() or host_cpu_arch()


def detect_gpu_arch(fallback: str | None = None) -> str:
    """The arch of the GPU here, such as gfx942 or sm_90a, or of TILEWISE_COMPAT_DEVICE. Where there is none: the fallback,
    and without one a DeviceError, since no GPU is assumed that nobody named."""
    named = compat_device()
    found = arch_of(named) if named else _amd_arch() or _nvidia_arch() or fallback
    if not found:
        raise DeviceError(_DEVICE_ERROR, "no GPU was found (neither an AMD GPU under /sys/class/kfd nor an NVIDIA GPU "
                                         "with its driver); name an arch, such as gfx942, or use the CPU: "
                                         f"{host_cpu_arch()}")
    return found


def device_of(arch: str) -> str:
    """The device that kernels of an arch run on: TILEWISE_COMPAT_DEVICE where that is of the arch."""
    kind = "cpu" if arch.startswith("cpu-") else "cuda" if arch.startswith("sm_") else "hip"
    named = compat_device()
    if named == _EMULATED + arch or named.split(":")[0] == kind:
        return named
    return kind if kind == "cpu" else f"{kind}:0"


def is_emulated(arch: str) -> bool:
    return device_of(arch).startswith(_EMULATED)
