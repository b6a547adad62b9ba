# SPDX-License-Identifier: MIT
"""The parts of `make bench-all`: which program measures each, on which problems, and how its output becomes results (result_files.py).
Standard library alone: what needs torch runs in programs of its own.
"""
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import gpu_conv_problems
import gpu_epilogues
import gpu_problems
import models
from result_files import OK, ROOT

COMMAND = ROOT / "build" / "bin" / "tilewise"
PROBLEMS = ROOT / "benchmarks" / "problems"
PEER_NAMES = {"cublas": "cuBLAS", "cublaslt": "cuBLASLt", "cudnn": "cuDNN"}
KEPT = ("problem", "family", "dtype", "chain", "group", "status", "reason", "kernel", "default_us", "measure_us", "plain_us", "peers_us", "roof")
DIGITS = 4


def key_of(result: dict) -> tuple:
    return result["problem"], result.get("chain"), result.get("family")


def rounded(value):
    """Numbers with a few digits, since times vary by more."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return {PEER_NAMES.get(name, name): rounded(us) for name, us in value.items()} if isinstance(value, dict) else value


def as_result(found: dict) -> dict:
    return {name: rounded(found[name]) for name in KEPT if name in found}


def python(script: str, *words: str) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, os.fspath(ROOT / "benchmarks" / script), *words], {"PYTHONPATH": os.fspath(ROOT / "python")}


def read_json(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"results": []}


@dataclasses.dataclass(frozen=True)
class GpuPart:
    """Problems of a file, measured by benchmarks/gpu_gemm.py or gpu_conv.py."""

    name: str
    about: str
    file: str
    words: tuple[str, ...]  # the script, and its first words
    parse: object
    ours: str  # the field that "ours_us" is
    least_seconds: int = 60

    def lines(self) -> list[tuple[str, list[str]]]:
        """(line, its problems) for each."""
        lines = [line for line in (PROBLEMS / self.file).read_text(encoding="utf-8").splitlines() if line.partition("#")[0].strip()]
        return [(line, [case.text for case in self.parse(line)]) for line in lines]

    def next_command(self, kept: dict, limit: int | None, folder: pathlib.Path):
        known = {result["problem"] for result in kept["results"]}
        left = [line for line, problems in self.lines()[:limit] if not known.issuperset(problems)]
        if not left:
            return None
        (folder / "problems.txt").write_text("\n".join(left) + "\n", encoding="utf-8")
        script, *words = self.words
        return python(script, *words, "--problems", os.fspath(folder / "problems.txt"), "--json", os.fspath(folder / "out.json"))

    def read(self, folder: pathlib.Path, kept: dict, code: int) -> tuple[list[dict], dict]:
        told = read_json(folder / "out.json")
        known = {key_of(result) for result in kept["results"]}
        results = [as_result({**found, self.ours: found.get("ours_us"), "default_us": found.get("model_us", found.get("ours_us"))}
                             if found["status"] == OK else found) for found in told["results"]]
        versions = {name: str(value) for name, value in told.get("environment", {}).items() if name in ("CUDA", "cuBLAS", "cuDNN", "torch")}
        return [result for result in results if key_of(result) not in known], versions


@dataclasses.dataclass(frozen=True)
class ModelsPart:
    """Whole models, one at a time, by benchmarks/models.py."""

    name: str = "models"
    about: str = "whole models against torch eager, as a graph and compiled: about 5 minutes a model, ten models"
    least_seconds: int = 300

    def next_command(self, kept: dict, limit: int | None, folder: pathlib.Path):
        known = {result["problem"] for result in kept["results"]}
        left = [model for model in models.MODELS[:limit] if model not in known]
        return python("models.py", "--models", left[0], "--json", os.fspath(folder / "out.json")) if left else None

    def read(self, folder: pathlib.Path, kept: dict, code: int) -> tuple[list[dict], dict]:
        told = read_json(folder / "out.json")
        results = [result for found in told["results"] for result in model_results(found)]
        return results, {name: str(value) for name, value in told.get("environment", {}).get("versions", {}).items()
                         if value and name != "tilewise"}


def model_results(found: dict) -> list[dict]:
    """A result for inference and one for training; ours is the fastest of our ways."""
    if "failed" in found:
        return [{"problem": found["model"], "family": "inference", "status": "failed", "reason": found["failed"]}]
    times = {name: side["ms"] * 1e3 for name, side in found["sides"].items() if "ms" in side}
    results = []
    for phase, ours, peers in (("inference", ("optimize", "replace graph", "replace"), ("eager", "graph", "compile", "max-autotune")),
                               ("training", ("train replace", "train tilewise"), ("train eager", "train compile"))):
        mine = [times[name] for name in ours if name in times]
        theirs = {f"torch {name.removeprefix('train ')}": rounded(times[name]) for name in peers if name in times}
        if mine and theirs:
            results.append({"problem": found["model"], "family": f"models, {phase}", "status": OK, "default_us": rounded(min(mine)),
                            "peers_us": theirs})
    return results


@dataclasses.dataclass(frozen=True)
class CpuPart:
    """Cases of benchmarks/cpu_gemm.cpp or cpu_conv.cpp, in their order."""

    name: str
    about: str
    what: str
    threads: int | None  # None: every CPU
    least_seconds: int = 60

    def next_command(self, kept: dict, limit: int | None, folder: pathlib.Path):
        if kept.get("complete"):
            return None
        threads = str(self.threads or len(os.sched_getaffinity(0)))
        words = [os.fspath(ROOT / "tools" / "bench_cpu"), self.what, "--only", "plain", "--json", os.fspath(folder / "out.jsonl"),
                 "--skip", str(len(kept["results"])), "--threads", threads, *(["--quick"] if limit else [])]
        return words, {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}

    def read(self, folder: pathlib.Path, kept: dict, code: int) -> tuple[list[dict], dict]:
        path = folder / "out.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        results = [as_result(json.loads(line)) for line in lines if line.endswith("\n")]
        if code == 0:
            kept["complete"] = True
        versions = {}
        for result in results:
            for peer in result["peers_us"]:
                name, _, version = peer.rpartition(" ")
                versions[name] = ", ".join(dict.fromkeys([*filter(None, versions.get(name, "").split(", ")), version]))
        return results, versions


PARTS = {part.name: part for part in (
    GpuPart("gemm", "products against cuBLAS and cuBLASLt: about 20 minutes", "gemm_gpu.txt", ("gpu_gemm.py",), gpu_problems.parse_cases,
            "measure_us"),
    GpuPart("conv", "convolutions against cuDNN: about 30 minutes", "conv_gpu.txt", ("gpu_conv.py",), gpu_conv_problems.parse_cases,
            "measure_us"),
    GpuPart("epilogues", "fused epilogues against torch: about 15 minutes", "epilogues_gpu.txt", ("gpu_gemm.py", "epilogues"),
            gpu_epilogues.parse_cases, "default_us"),
    ModelsPart(),
    CpuPart("cpu-gemm", "products on one CPU thread against oneDNN and OpenBLAS: about 20 minutes", "gemm", 1),
    CpuPart("cpu-conv", "convolutions on one CPU thread against oneDNN: about an hour", "conv", 1),
    CpuPart("cpu-gemm-all", "products on every CPU against oneDNN and OpenBLAS: about 20 minutes", "gemm", None),
)}


def ask(*words: str) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def usual_parts() -> list[str]:
    on_gpu = shutil.which("nvidia-smi") and ask("nvidia-smi", "-L")
    return [name for name in PARTS if name.startswith("cpu") != bool(on_gpu)]


def commit() -> str:
    """That of the build, since what runs is the library."""
    version = json.loads(ask(os.fspath(COMMAND), "--version", "--json") or '{"version": ""}')["version"]
    return version.partition("+g")[2] or ask("git", "-C", os.fspath(ROOT), "rev-parse", "--short=12", "HEAD") or "unknown"


def facts(on_gpu: bool, chip: str | None) -> dict:
    """The facts of the machine for a result file."""
    if on_gpu:
        name, _, driver = (ask("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines() or [""])[0].partition(", ")
        device = name.removeprefix("NVIDIA ") or "GPU"
        return {"commit": commit(), "chip": chip or re.sub(r"\W+", "-", device.lower()), "device": device, "driver": driver or None}
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), flags=re.M)
    host = [check["found"] for check in json.loads(ask(os.fspath(COMMAND), "doctor", "--json") or '{"checks": []}')["checks"]
            if check["check"] == "host CPU"]
    arch = json.loads(ask(os.fspath(COMMAND), "arch", host[0], "--json") or "{}") if host else {}
    return {"commit": commit(), "chip": chip or arch.get("chip", {}).get("name", "cpu"), "device": model[1] if model else "CPU", "driver": None}
