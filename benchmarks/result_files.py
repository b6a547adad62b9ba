# SPDX-License-Identifier: MIT
"""Result files: what `make bench-all` measured on one machine, one JSON file in benchmarks/results. Standard library alone.

A file has "schema", "commit", "date", "chip", "device", "driver", "versions" ({name: version}), maybe a "note", and "parts" by name:
"gemm", "conv", "epilogues", "models" (GPU), "cpu-gemm", "cpu-conv" (one thread), "cpu-gemm-all" (all threads).
A part has "command", "seconds", maybe a "note", and "results". A result has "problem", "family" and "status" (ok, wrong or failed, then a
"reason"); where it is ok also "peers_us" ({name: us}) and the times of tilewise: "default_us" as it chooses by default, "measure_us"
with the strategy `measure`, either of them or both. "kernel", "roof", "chain" and "plain_us" may follow.
A part may be "complete". A part of which only means were kept has "means" in the place of "results": "group", "cases", "peer", "default", "measure".

A ratio is the fastest peer's time over ours: above 1, tilewise is faster.
"""
import dataclasses
import json
import math
import pathlib
from collections.abc import Callable, Iterable

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "results"
SCHEMA = 1
OK = "ok"
PARTS = ("gemm", "conv", "epilogues", "models", "cpu-gemm", "cpu-conv", "cpu-gemm-all")
DEFAULT, MEASURE = "default", "measure"
THREADS = {"cpu-gemm": "one thread", "cpu-conv": "one thread", "cpu-gemm-all": "all threads"}
DIRECTIONS = {"conv_fwd": "forward", "conv_bwd_data": "backward data", "conv_bwd_weight": "backward weight"}


@dataclasses.dataclass(frozen=True)
class Part:
    """A part with the facts of its file."""

    name: str
    file: dict
    content: dict

    @property
    def results(self) -> list[dict]:
        return self.content.get("results", [])

    @property
    def where(self) -> str:
        return self.file["device"] + (f", {THREADS[self.name]}" if self.name in THREADS else "")

    @property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(name for result in self.results for name in result.get("peers_us", {})))


@dataclasses.dataclass(frozen=True)
class Mean:
    """The geometric means of a group of results."""

    group: str
    cases: int
    peer: str
    default: float | None
    measure: float | None
    least: float | None = None
    bad: int = 0


def read(path: pathlib.Path) -> dict:
    content = json.loads(path.read_text(encoding="utf-8"))
    if content.get("schema") != SCHEMA:
        raise ValueError(f"{path}: schema {content.get('schema')}; need {SCHEMA}")
    unknown = [name for name in content["parts"] if name not in PARTS]
    if unknown:
        raise ValueError(f"{path}: unknown part {unknown[0]}; need one of {', '.join(PARTS)}")
    return content


def text_of(content: dict) -> str:
    """JSON with a line for each result, so that a review can read what changed."""
    parts = []
    for name in PARTS:
        if name not in content["parts"]:
            continue
        part = dict(content["parts"][name])
        key = "means" if "means" in part else "results"
        rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in part.pop(key))
        head = json.dumps(part, ensure_ascii=False)[1:-1]
        parts.append(f'  {json.dumps(name)}: {{{head}{", " if head else ""}"{key}": [\n{rows}\n  ]}}')
    head = json.dumps({key: value for key, value in content.items() if key != "parts"}, ensure_ascii=False)[1:-1]
    return f'{{{head},\n "parts": {{\n' + ",\n".join(parts) + "\n }}\n"


def write(path: pathlib.Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text_of(content), encoding="utf-8")
    partial.replace(path)


def all_files(folder: pathlib.Path = FOLDER) -> list[dict]:
    """The oldest first."""
    return sorted((read(path) for path in sorted(folder.glob("*.json"))), key=lambda content: content["date"])


def latest_parts(files: Iterable[dict]) -> list[Part]:
    """The newest of each part on each chip, GPUs first, in the order of PARTS."""
    newest: dict[tuple[str, str], Part] = {}
    for content in files:
        for name, part in content["parts"].items():
            newest[name, content["chip"]] = Part(name, content, part)
    return [newest[key] for key in sorted(newest, key=lambda key: (PARTS.index(key[0]), key[1]))]


def geomean(values: Iterable[float]) -> float | None:
    """None for no values, which have no mean."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def ratio(result: dict, way: str) -> float | None:
    """The fastest peer's time over ours, where both were measured."""
    peers = [us for us in result.get("peers_us", {}).values() if us is not None]
    ours = result.get(f"{way}_us")
    return min(peers) / ours if result["status"] == OK and peers and ours else None


def by_family(result: dict) -> str:
    return result["family"]


def group_of(result: dict) -> str:
    """The group of a result in the summary: its chain, its type and direction, or its family."""
    operation, _, fields = result["problem"].partition(":")
    if "chain" in result:
        return "plain" if result["chain"] == "plain" else "with an epilogue"
    values = dict(field.partition("=")[::2] for field in fields.split(","))
    if operation in DIRECTIONS:
        groups = values.get("g", "1")
        kind = "dense" if groups == "1" else "depthwise" if groups == values["c"] else "grouped"
        return f"{values['dtype']} {DIRECTIONS[operation]}, {kind}"
    return f"{values['dtype']} products" if operation == "gemm" else result["family"]


def means(part: Part, key: Callable[[dict], str] = group_of) -> list[Mean]:
    """One for each group, in the order in which they are met."""
    if "means" in part.content:
        return [Mean(row["group"], row["cases"], row["peer"], row.get(DEFAULT), row.get(MEASURE)) for row in part.content["means"]]
    groups: dict[str, list[dict]] = {}
    for result in part.results:
        groups.setdefault(key(result), []).append(result)
    peer = ", ".join(part.peers)
    out = []
    for group, found in groups.items():
        ratios = {way: [value for value in (ratio(result, way) for result in found) if value] for way in (DEFAULT, MEASURE)}
        out.append(Mean(group, len(found), peer, geomean(ratios[DEFAULT]), geomean(ratios[MEASURE]),
                        min(ratios[DEFAULT] or ratios[MEASURE], default=None), sum(result["status"] != OK for result in found)))
    return out
