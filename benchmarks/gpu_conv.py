# SPDX-License-Identifier: MIT
"""Compares tilewise's convolutions on torch's CUDA tensors with cuDNN, as torch calls it; `make bench-gpu-conv` runs it.

  PYTHONPATH=python python3 benchmarks/gpu_conv.py [--only REGEX] [--strategy measure|auto|rules] [--markdown FILE] ...

It measures as benchmarks/gpu_gemm.py does (see its head): random data in more memory than the L2 cache has, one CUDA graph
for each side, replayed in turns, results checked before and after. cuDNN searches all its engines (benchmark mode without
a limit) and works on channels-last memory in place; fp32 is true fp32. A ratio is cuDNN's time over ours: above 1, tilewise
is faster. Exits with 1 where a result was wrong or failed.
"""
import sys

from gpu_comparison import make_parser, run
from gpu_conv_problems import parse_cases
from gpu_report import OK, environment_text, geomean, model_share, number, ratio_to, table

NAMES = {"conv_fwd": "forward", "conv_bwd_data": "data", "conv_bwd_weight": "weight"}


def peer_roof(result: dict) -> float | None:
    return result["roof"] and result["roof"] / ratio_to(result)


def mean(results: list[dict], value) -> float | None:
    return geomean(found for found in map(value, results) if found)


def summary_table(results: list[dict]) -> str:
    """A row for each family and one for all; each direction's speed-up and share of the roof, ours and cuDNN's."""
    families = [*dict.fromkeys(result["family"] for result in results), None]
    rows = []
    for family in families:
        cells = [family or "all"]
        here = [result for result in results if family is None or result["family"] == family]
        for op in NAMES:
            right = [result for result in here if result["problem"].startswith(op + ":") and result["status"] == OK]
            cells += [number(mean(right, ratio_to)), number(mean(right, lambda r: r["roof"]), 0, 100),
                      number(mean(right, peer_roof), 0, 100), number(mean(right, model_share), 0, 100)]
        bad = sum(result["status"] != OK for result in here)
        rows.append([*cells, str(bad)])
    titles = ["family"]
    for name in NAMES.values():
        titles += [name, "% roof", "cuDNN %", "model %"]
    return table([*titles, "wrong or failed"], rows, 1)


def detail_table(results: list[dict]) -> str:
    rows = []
    for result in results:
        problem = f"`{result['problem']}`"
        if result["status"] != OK:
            rows.append([problem, f"{result['status']}: {result['reason']}".replace("|", "/"), *["-"] * 5])
            continue
        rows.append([problem, f"`{result['kernel']}`", number(result["ours_us"], 1), number(result["peers_us"]["cudnn"], 1),
                     number(ratio_to(result)), number(result["roof"], 0, 100), number(model_share(result), 0, 100)])
    return table(["problem", "kernel", "us", "cuDNN us", "ratio", "% of roof", "model %"], rows, 2)


def markdown(results: list[dict], environment: dict, strategy: str) -> str:
    return "\n".join([
        "## Beside cuDNN", "",
        f"`make bench-gpu-conv`, strategy `{strategy}`; {environment_text(environment)}.", "",
        "Geometric means of cuDNN's time over that of tilewise (**above 1, tilewise is faster**) for each direction, and the",
        "share of the roof that both reach: the larger of arithmetic at the arch file's peak and every tensor moved once.",
        "\"model %\" is what the kernel that the model chooses without measuring reaches of the speed of the chosen one.", "",
        summary_table(results), "", "### Every layer", "", detail_table(results), ""])


if __name__ == "__main__":
    parser = make_parser(__doc__, "conv_gpu.txt")
    sys.exit(run("gpu_conv", parser.parse_args(), parse_cases, summary_table, markdown))
