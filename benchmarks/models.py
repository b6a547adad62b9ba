# SPDX-License-Identifier: MIT
"""Times whole models: torch eager, as a CUDA graph and compiled, beside replace and optimize; `make bench-models` runs it.

  PYTHONPATH=python python3 benchmarks/models.py [--models resnet50,vit_b_16] [--device cuda] [--json FILE] ...
  PYTHONPATH=python python3 benchmarks/models.py --device cpu --models resnet18 --batch 1 --image 64 --quick

How it measures:
- torchvision's models, channels last, and blocks of transformers where that is installed; random weights, nothing is downloaded.
- Each model has a process of its own. Its sides take turns, round by round; the median round counts.
- Inference: eager; eager as a CUDA graph; torch.compile (reduce-overhead, freezing); replace; replace as a CUDA graph; optimize.
  --max-autotune adds torch.compile in that mode. CUDA graphs are left out on a CPU.
- Training: forward, a sum of squares and backward, eager and compiled, torch and tilewise.
- Agreement is the relative distance from the eager result in fp32, of the output, or of the gradient of all parameters.
- The host's time for each layer is that of a call until it returns, over the number of convolutions and linear layers.

A ratio is torch's time over ours: above 1, tilewise is faster. Exits with 1 where a side failed.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys

from gpu_report import geomean, number, table

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ("resnet50", "resnext50_32x4d", "mobilenet_v2", "convnext_tiny", "efficientnet_b0", "regnet_y_1_6gf", "densenet121",
          "vit_b_16", "bert", "llama")
# Ours, and torch's side that it is compared with.
RATIOS = (("optimize", "compile"), ("replace", "eager"), ("replace graph", "graph"), ("train replace", "train eager"),
          ("train tilewise", "train compile"))


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas (torchvision's, bert, llama)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, cpu")
    parser.add_argument("--dtype", help="bfloat16 (default on a GPU), float16, float32 (default on a CPU)")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--image", type=int, default=224, help="height and width of images")
    parser.add_argument("--tokens", type=int, default=128, help="length of texts")
    parser.add_argument("--phases", default="inference,training", help="inference, training, or both")
    parser.add_argument("--strategy", help="how our kernels are chosen, such as measure")
    parser.add_argument("--max-autotune", action="store_true", help="torch.compile in that mode as well")
    parser.add_argument("--quick", action="store_true", help="few rounds: whether it runs, not how fast")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one model")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go as JSON")
    options = parser.parse_args(arguments)
    options.dtype = options.dtype or ("float32" if options.device == "cpu" else "bfloat16")
    options.models = options.models.split(",")
    options.phases = options.phases.split(",")
    strange = set(options.phases) - {"inference", "training"}
    if strange:
        parser.error(f"--phases: {', '.join(sorted(strange))}; need inference, training, or both")
    return options


def task_of(options: argparse.Namespace, model: str) -> dict:
    rounds, repeats = (3, 1) if options.quick else (15, 10)
    return {"model": model, "device": options.device, "dtype": options.dtype, "batch": options.batch, "image": options.image,
            "tokens": options.tokens, "phases": options.phases, "strategy": options.strategy,
            "max_autotune": options.max_autotune, "rounds": rounds, "repeats": repeats}


def measure(options: argparse.Namespace, model: str) -> dict:
    """The worker's answer for a model, or why there is none."""
    command = [sys.executable, str(ROOT / "benchmarks" / "model_worker.py"), json.dumps(task_of(options, model))]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"model": model, "failed": f"no result within {options.timeout:g} s", "sides": {}}
    if done.returncode:
        return {"model": model, "failed": f"the process ended with {done.returncode}", "sides": {}}
    return json.loads(done.stdout.splitlines()[-1])


def ratio(result: dict, ours: str, theirs: str) -> float | None:
    times = [result["sides"].get(side, {}).get("ms") for side in (ours, theirs)]
    return None if None in times else times[1] / times[0]


def ratios_table(results: list[dict]) -> str:
    pairs = [pair for pair in RATIOS if any(ratio(result, *pair) for result in results)]
    titles = ["model", *(f"{ours} / {theirs}" for ours, theirs in pairs)]
    rows = [[result["model"], *(number(ratio(result, *pair)) for pair in pairs)] for result in results]
    means = [geomean([x for result in results if (x := ratio(result, *pair)) is not None]) for pair in pairs]
    return table(titles, [*rows, ["geometric mean", *map(number, means)]], 1)


def sides_table(results: list[dict]) -> str:
    titles = ["model", "side", "ms", "first call s", "error against fp32", "host us per layer"]
    rows = []
    for result in results:
        for name, side in result["sides"].items():
            cells = [side["failed"], "-", "-", "-"] if "failed" in side else [
                number(side["ms"], 3), number(side["first_s"], 1), f"{side['error']:.2e}",
                number(side.get("host_us_per_layer"), 1)]
            rows.append([result["model"], name, *cells])
    return table(titles, rows, 2)


def environment(options: argparse.Namespace) -> dict:
    import torch

    import tilewise
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    versions = {"tilewise": tilewise.version(), "torch": torch.__version__, "python": platform.python_version()}
    for package in ("torchvision", "transformers"):
        try:
            versions[package] = __import__(package).__version__
        except ImportError:
            versions[package] = None
    on_gpu = options.device != "cpu"
    device = torch.cuda.get_device_name(torch.device(options.device)) if on_gpu else platform.processor() or platform.machine()
    return {"commit": commit.stdout.strip() or None, "device": device, "threads": torch.get_num_threads(),
            "versions": versions}


def main(arguments: list[str] | None = None) -> int:
    options = read_options(arguments)
    facts = environment(options)
    missing = {"bert", "llama"} if facts["versions"]["transformers"] is None else set()
    for model in missing & set(options.models):
        print(f"{model}: transformers is not installed; left out")
    results = [measure(options, model) for model in options.models if model not in missing]
    heading = (f"{facts['device']}, {options.dtype}, batch {options.batch}, images {options.image}x{options.image}, texts of "
               f"{options.tokens}; torch {facts['versions']['torch']}, commit {facts['commit']}")
    print(f"\n{heading}\n\ntorch's time over ours:\n\n{ratios_table(results)}\n\n{sides_table(results)}")
    for result in results:
        if "failed" in result:
            print(f"{result['model']}: {result['failed']}")
    if options.json is not None:
        settings = {name: str(what) if isinstance(what, pathlib.Path) else what for name, what in vars(options).items()}
        options.json.write_text(json.dumps({"environment": facts, "options": settings, "results": results}, indent=1))
    failed = any("failed" in result or any("failed" in side for side in result["sides"].values()) for result in results)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
