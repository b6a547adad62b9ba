# SPDX-License-Identifier: MIT
"""The output of benchmarks/gpu_gemm.py: a line for each problem, geometric means by type and family, and all of it as Markdown.

A result is a dict, as the worker (gpu_worker.py) sends it: "problem", "family", "dtype" and "status" always, which is ok,
wrong or failed; with wrong and failed a "reason"; with ok "ours_us", "peers_us" ({name: us or None}), "tflops",
"roof" (the part of it that is reached, or None), "kernel", and "model_us", the time of the kernel that the model would have
chosen unmeasured. Only ok ones count in a mean. Standard library alone.
"""
import math
from collections.abc import Iterable

OK, WRONG, FAILED = "ok", "wrong", "failed"
PEERS = ("cublas", "cublaslt")
ALL = "all"


def geomean(values: Iterable[float]) -> float | None:
    """None for no values, which have no mean."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def fastest_peer_us(result: dict) -> float | None:
    return min((us for us in result["peers_us"].values() if us is not None), default=None)


def ratio_to(result: dict, peer: str | None = None) -> float | None:
    """A peer's time over ours, above 1 where we are faster; without a name, the fastest peer's."""
    if result["status"] != OK:
        return None
    us = fastest_peer_us(result) if peer is None else result["peers_us"].get(peer)
    return None if us is None else us / result["ours_us"]


def model_share(result: dict) -> float | None:
    """The speed of the model's own choice, as a share of the chosen kernel's."""
    return result["ours_us"] / result["model_us"] if result["status"] == OK else None


def number(value: float | None, digits: int = 2, scale: float = 1) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


LINE_TITLE = f"{'ratio':>6} {'ours us':>9} {'peer us':>9} {'TFLOPS':>7} {'% roof':>6}  problem, kernel"


def line_of(result: dict) -> str:
    if result["status"] != OK:
        return f"{result['status'].upper():>6}  {result['problem']}: {result['reason']}"
    return (f"{number(ratio_to(result)):>6} {number(result['ours_us']):>9} {number(fastest_peer_us(result)):>9} "
            f"{number(result['tflops'], 1):>7} {number(result['roof'], 0, 100):>6}  {result['problem']}  {result['kernel']}")


def table(titles: list[str], rows: list[list[str]], left: int) -> str:
    """Markdown that can also be read as it is: the first `left` columns are texts, the others numbers."""
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) if i < left else cell.rjust(width)
                                 for i, (cell, width) in enumerate(zip(cells, widths))) + " |"

    rule = "|" + "|".join("-" * (width + 2) if i < left else "-" * (width + 1) + ":"
                          for i, width in enumerate(widths)) + "|"
    return "\n".join([line(titles), rule, *map(line, rows)])


def group_results(results: list[dict]) -> list[tuple[str, str, list[dict]]]:
    """(dtype, family, results): the families of each type in the order they are met, then all of the type."""
    groups: dict[tuple[str, str], list[dict]] = {}
    totals: dict[tuple[str, str], list[dict]] = {}
    for result in results:
        groups.setdefault((result["dtype"], result["family"]), []).append(result)
        totals.setdefault((result["dtype"], ALL), []).append(result)
    return [(*key, found) for key, found in [*groups.items(), *totals.items()]]


def summary_table(results: list[dict]) -> str:
    titles = ["type", "family", "cases", *PEERS, "fastest peer", "least", "wrong", "failed", "model %"]
    rows = []
    for dtype, family, found in group_results(results):
        best = [ratio for ratio in map(ratio_to, found) if ratio is not None]
        means = [geomean(ratio for ratio in (ratio_to(result, peer) for result in found) if ratio is not None)
                 for peer in PEERS]
        counts = [str(sum(result["status"] == status for result in found)) for status in (WRONG, FAILED)]
        model = geomean(share for share in map(model_share, found) if share is not None)
        rows.append([dtype, family, str(len(found)), *map(number, means), number(geomean(best)),
                     number(min(best, default=None)), *counts, number(model, 0, 100)])
    return table(titles, rows, 2)


def detail_table(results: list[dict]) -> str:
    titles = ["problem", "kernel", "us", *(f"{peer} us" for peer in PEERS), "ratio", "TFLOPS", "% of roof", "model %"]
    rows = []
    for result in results:
        problem = f"`{result['problem'].removeprefix('gemm:')}`"
        if result["status"] != OK:
            rows.append([problem, f"{result['status']}: {result['reason']}".replace("|", "/"), *["-"] * (len(titles) - 2)])
            continue
        rows.append([problem, f"`{result['kernel']}`", number(result["ours_us"]),
                     *(number(result["peers_us"].get(peer)) for peer in PEERS), number(ratio_to(result)),
                     number(result["tflops"], 1), number(result["roof"], 0, 100), number(model_share(result), 0, 100)])
    return table(titles, rows, 2)


def environment_text(environment: dict) -> str:
    return ", ".join(f"{name} {value}" for name, value in environment.items())


def markdown(results: list[dict], environment: dict, strategy: str) -> str:
    return "\n".join([
        "## Beside cuBLAS and cuBLASLt", "",
        f"`make bench-gpu`, strategy `{strategy}`; {environment_text(environment)}.", "",
        "A ratio is the peer's time over that of tilewise: **above 1, tilewise is faster**. The means are geometric, over the",
        "results that were right; \"fastest peer\" takes the better of the two for each problem, \"least\" is the worst",
        "problem's ratio to it; \"model %\" is what the kernel that the model chooses without measuring reaches of the speed of",
        "the one that was chosen. How it is measured is at the head of `benchmarks/gpu_gemm.py`.", "",
        summary_table(results), "", "### Every problem", "", detail_table(results), ""])


def host_cost_table(costs: list[dict]) -> str:
    """Of {"call", "median_us", "least_us"}."""
    rows = [[cost["call"], number(cost["median_us"]), number(cost["least_us"])] for cost in costs]
    return table(["call", "median us", "least us"], rows, 1)
