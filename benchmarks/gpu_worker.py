# SPDX-License-Identifier: MIT
"""The process that touches the GPU for benchmarks/gpu_gemm.py and gpu_conv.py, which start it again where a fault ends it.

A request is a line of JSON on stdin, {"ask": "environment" | "compare" | "host_cost", ...}, its reply one on stdout (see
gpu_child.py); what others print goes to stderr. After a fault of the device nothing works any more in a process: then
its reply is the last.
"""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys

import torch

import tilewise
import gpu_conv_compare
import gpu_conv_problems
import gpu_gemm_compare
from gpu_compare import DEVICE, compare, release
from gpu_host_cost import host_costs
from gpu_problems import parse_case, read_peaks


def driver_version() -> str:
    try:
        answer = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                                capture_output=True, text=True, timeout=20, check=True)
        return answer.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return "unknown"


def cublas_version() -> str:
    """The version of the libraries that torch has loaded; cuBLAS and cuBLASLt are released together."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "libcublasLt.so" in line:
            ask = ctypes.CDLL(line[line.index("/"):]).cublasLtGetVersion
            ask.restype = ctypes.c_size_t
            version = ask()
            return f"{version // 10000}.{version // 100 % 100}.{version % 100}"
    return "unknown"


def environment() -> dict:
    torch.ones(16, 16, device=DEVICE) @ torch.ones(16, 16, device=DEVICE)  # loads cuBLAS
    return {"device": torch.cuda.get_device_name(DEVICE), "driver": driver_version(), "CUDA": torch.version.cuda,
            "cuBLAS": cublas_version(),
            "cuDNN": torch.backends.cudnn.version(), "torch": torch.__version__, "tilewise": tilewise.__version__}


def answer(request: dict) -> dict:
    if request["ask"] == "environment":
        return environment()
    if request["ask"] == "host_cost":
        return {"costs": host_costs(request["strategy"], DEVICE)}
    peaks = read_peaks(*torch.cuda.get_device_capability(DEVICE))
    if request["problem"].startswith("conv"):
        case = gpu_conv_problems.parse_case(request["problem"], request["family"])
        return compare(case, gpu_conv_compare, request["strategy"], peaks)
    return compare(parse_case(request["problem"], request["family"]), gpu_gemm_compare, request["strategy"], peaks)


def device_works() -> bool:
    try:
        release()
    except RuntimeError:
        return False
    return True


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent, which ends this process
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        found = answer(json.loads(line))
        last = not device_works()
        print(json.dumps({"answer": found, "last": last}), file=replies, flush=True)
        if last:
            os._exit(1)  # destructors would fail one after the other


if __name__ == "__main__":
    main()
