# SPDX-License-Identifier: MIT
"""Draws the results of benchmarks/gpu_gemm.py as an SVG: a row for each type and family, a dot for each problem, a bar at the
geometric mean, on a logarithmic scale of the fastest peer's time over ours.

  python3 benchmarks/gpu_plot.py RESULTS.json plot.svg

RESULTS.json is what gpu_gemm.py --json wrote. Needs the standard library alone, and writes the same bytes for the same results.
"""
import json
import math
import pathlib
import sys

from gpu_report import ALL, geomean, group_results, ratio_to

WIDTH, LEFT, RIGHT, TOP, ROW = 760, 190, 30, 44, 22
LEAST, MOST = 0.5, 4.0  # of the scale; what is beyond sits at its end
TICKS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)


def place(ratio: float) -> float:
    part = math.log(min(MOST, max(LEAST, ratio)) / LEAST) / math.log(MOST / LEAST)
    return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)


def rows_of(results: list[dict]) -> list[tuple[str, list[float]]]:
    """The families of each type; a type that has only one family is one row."""
    groups = group_results(results)
    families: dict[str, set] = {}
    for dtype, family, _ in groups:
        families.setdefault(dtype, set()).add(family)
    rows = []
    for dtype, family, found in sorted(groups, key=lambda group: (group[0] != "bf16", group[0], group[1] == ALL)):
        if family == ALL and len(families[dtype]) == 2:
            continue
        ratios = [ratio for ratio in map(ratio_to, found) if ratio is not None]
        if ratios:
            rows.append((f"{dtype} {family}", ratios))
    return rows


def draw(rows: list[tuple[str, list[float]]], title: str) -> str:
    height = TOP + ROW * len(rows) + 30
    bottom = TOP + ROW * len(rows)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', f'<text x="12" y="20" font-size="14">{title}</text>']
    for tick in TICKS:
        colour = "#555" if tick == 1 else "#ddd"
        lines.append(f'<path d="M{place(tick)} {TOP - 6}V{bottom}" stroke="{colour}"/>')
        lines.append(f'<text x="{place(tick)}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
    for i, (name, ratios) in enumerate(rows):
        y, mean = TOP + ROW * i + ROW // 2, geomean(ratios)
        lines.append(f'<text x="12" y="{y + 4}">{name}</text>')
        lines.append(f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{mean:.2f}</text>')
        lines += [f'<circle cx="{place(ratio)}" cy="{y}" r="3.5" fill="{"#2a7" if ratio >= 1 else "#c53"}" fill-opacity=".55"/>'
                  for ratio in ratios]
        lines.append(f'<path d="M{place(mean)} {y - 8}v16" stroke="#000" stroke-width="2"/>')
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    content = json.loads(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
    environment = content["environment"]
    title = f"Fastest peer's time over ours (above 1: tilewise is faster), {environment['device']}, {environment['date']}"
    pathlib.Path(arguments[1]).write_text(draw(rows_of(content["results"]), title), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
