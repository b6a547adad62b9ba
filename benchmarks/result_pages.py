# SPDX-License-Identifier: MIT
"""The tables and plots of README.md and docs/performance, made from result files (result_files.py). A page has them between two
comments, `<!-- results: NAME -->` and `<!-- end of results -->`; NAME is `summary`, `history`, or a part and what is shown of it.
"""
import pathlib
import re

import gpu_plot
from gpu_report import number, table
from result_files import DEFAULT, DIRECTIONS, MEASURE, ROOT, Mean, Part, all_files, by_family, group_of, latest_parts, means, ratio

BLOCK = re.compile(r"(<!-- results: ([\w -]+) -->\n).*?(<!-- end of results -->)", re.S)
DIRECTION = re.compile("|".join(DIRECTIONS.values()))
PAGES = ("README.md", *(f"docs/performance/{name}.md" for name in
                        ("index", "cuda-gemm", "cuda-conv", "cuda-epilogues", "models", "cpu-gemm", "cpu-conv", "history")))
PLOTS = "docs/performance/plots"
WORST = 10


def commit_text(content: dict) -> str:
    commit, _, changed = content["commit"].partition(".")
    return f"`{commit[:8]}{'.' if changed else ''}{changed}`"


def facts(part: Part) -> str:
    """One sentence on where, when and how the part was measured."""
    file = part.file
    versions = ", ".join(f"{name} {version}" for name, version in file["versions"].items())
    driver = f"driver {file['driver']}, " if file.get("driver") else ""
    sentences = [f"{part.where}, {file['date']}, commit {commit_text(file)}, {driver}{versions}.",
                 f"Command: `{part.content['command']}`.", file.get("note"), part.content.get("note")]
    return "\n".join(filter(None, sentences))


def summary_rows(part: Part) -> list[list[str]]:
    """A row for each group; the directions of a convolution share one."""
    rows: dict[str, list[Mean]] = {}
    for mean in means(part):
        if mean.group != "plain":
            rows.setdefault(DIRECTION.sub("convolutions", mean.group), []).append(mean)

    def shown(values: list[float | None]) -> str:
        return " / ".join(map(number, values)) if any(values) else "-"

    return [[f"{part.where}: {group}", str(sum(mean.cases for mean in found)), found[0].peer, shown([mean.default for mean in found]),
             shown([mean.measure for mean in found]), f"{commit_text(part.file)}, {part.file['date']}"] for group, found in rows.items()]


def summary(files: list[dict]) -> str:
    rows = [row for part in latest_parts(files) for row in summary_rows(part)]
    notes = [f"- {part.file['device']}, {part.name}: {part.content['note']}" for part in latest_parts(files) if "note" in part.content]
    notes += dict.fromkeys(f"- {part.file['device']}, {part.file['date']}: {part.file['note']}" for part in latest_parts(files)
                           if part.file.get("note"))
    return "\n".join([table(["where, what", "cases", "peer", "default", "`measure`", "commit, date"], rows, 1), "", *notes]).rstrip()


def families(part: Part) -> str:
    key = (lambda result: f"{group_of(result)}, {by_family(result)}") if part.name in ("gemm", "cpu-gemm") else by_family
    if part.name == "epilogues":
        key = lambda result: f"{result['chain']}, {result['group']}"  # noqa: E731
    if part.name in ("conv", "cpu-conv"):
        key = lambda result: f"{by_family(result)}, {group_of(result)}"  # noqa: E731
    rows = [[mean.group, str(mean.cases), number(mean.default), number(mean.measure), number(mean.least), str(mean.bad)]
            for mean in means(part, key)]
    return table(["problems", "cases", "default", "`measure`", "least", "wrong or failed"], rows, 1)


def worst(part: Part) -> str:
    """The problems that are furthest behind."""
    def of(result: dict) -> float | None:
        return ratio(result, DEFAULT) or ratio(result, MEASURE)

    found = sorted((result for result in part.results if of(result) is not None), key=of)[:WORST]
    rows = [[f"`{result['problem']}`" + (f" {result['chain']}" if "chain" in result else ""), number(result.get("default_us"), 1),
             number(result.get("measure_us"), 1), number(min(us for us in result["peers_us"].values() if us), 1), number(of(result))]
            for result in found]
    return table(["problem", "default us", "`measure` us", "peer us", "ratio"], rows, 1)


def each(part: Part) -> str:
    """Every problem beside every peer, in milliseconds."""
    peers = list(dict.fromkeys(name for result in part.results for name in result["peers_us"]))
    rows = [[result["problem"], number(result["default_us"] / 1e3), *(number(us / 1e3) if us else "-" for us in map(result["peers_us"].get, peers)),
             number(ratio(result, DEFAULT))] for result in part.results]
    return table(["problem", "tilewise ms", *(f"{name} ms" for name in peers), "fastest peer / tilewise"], rows, 1)


def plot_rows(part: Part) -> list[tuple[str, list[float]]]:
    groups: dict[str, list[float]] = {}
    for result in part.results:
        found = ratio(result, DEFAULT) or ratio(result, MEASURE)
        if found is not None:
            groups.setdefault(group_of(result) if part.name != "gemm" else by_family(result), []).append(found)
    return list(groups.items())


def plot(part: Part) -> str:
    return gpu_plot.draw(plot_rows(part), f"Fastest peer's time over ours (above 1: tilewise is faster), {part.file['device']}, "
                                          f"{part.file['date']}")


def plot_name(part: Part) -> str:
    return f"{part.name}-{part.file['chip']}.svg"


VIEWS = {"worst": worst, "each": each}


def part_block(parts: list[Part], name: str, what: str) -> str:
    chosen = [part for part in parts if part.name == name]
    if not chosen:
        return f"No result file has this part yet. `make bench-all ARGS='--parts {name}'` measures it."
    texts = []
    for part in chosen:
        if what in VIEWS:
            texts.append(VIEWS[what](part))
        else:
            picture = [f"![ratio of every problem, by group](plots/{plot_name(part)})", ""] if part.results else []
            texts.append("\n".join([facts(part), "", *picture, families(part)]))
    return "\n\n".join(texts)


def history(files: list[dict]) -> str:
    rows = [[content["date"], commit_text(content), Part(name, content, part).where, name, mean.group, str(mean.cases), number(mean.default),
             number(mean.measure)]
            for content in reversed(files) for name, part in content["parts"].items() for mean in means(Part(name, content, part))]
    return table(["date", "commit", "device", "part", "group", "cases", "default", "`measure`"], rows, 5)


def block(name: str, files: list[dict]) -> str:
    if name == "summary":
        return summary(files)
    if name == "history":
        return history(files)
    part, _, what = name.partition(" ")
    return part_block(latest_parts(files), part, what)


def filled(text: str, files: list[dict]) -> str:
    return BLOCK.sub(lambda found: f"{found[1]}\n{block(found[2], files)}\n\n{found[3]}", text)


def outputs(root: pathlib.Path = ROOT) -> dict[pathlib.Path, str]:
    """Every file that follows from the result files, with its text."""
    files = all_files(root / "benchmarks" / "results")
    texts = {root / page: filled((root / page).read_text(encoding="utf-8"), files) for page in PAGES}
    for part in latest_parts(files):
        if part.results:
            texts[root / PLOTS / plot_name(part)] = plot(part)
    return texts
