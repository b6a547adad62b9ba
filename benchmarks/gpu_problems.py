# SPDX-License-Identifier: MIT
"""The problems that benchmarks/gpu_gemm.py compares: reading them from a file, what they need, and the least time.

A file has the text of a problem a line and its family behind a #; lines that are empty or only a comment do not count.
The text is the library's; here it must name every field that the peers' call is made from, and no other, since a peer
that computes less or something else would be no comparison. Needs the standard library alone.
"""
import dataclasses
import json
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = ("m", "n", "k", "dtype", "layout")
OPTIONAL = ("batch", "math")
ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}  # the types that torch multiplies
OUTPUT_BYTES = {**ELEMENT_BYTES, "fp8": 2, "int8": 4}  # of fp16 and int32
NO_FAMILY = "other"


@dataclasses.dataclass(frozen=True)
class GemmCase:
    """A product and the family it is counted in."""

    text: str
    family: str
    m: int
    n: int
    k: int
    dtype: str
    layout: str
    batch: int = 1
    math: str = "strict"

    def stored_shape(self, operand: str) -> tuple[int, ...]:
        """How a, b or c lies in memory: as written, or transposed where its letter of the layout is c."""
        place = "abc".index(operand)
        shape = ((self.m, self.k), (self.k, self.n), (self.m, self.n))[place]
        if self.layout[place] == "c":
            shape = shape[::-1]
        return shape if self.batch == 1 else (self.batch, *shape)

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        inputs = sum(math.prod(self.stored_shape(operand)) for operand in "ab")
        return ELEMENT_BYTES[self.dtype] * inputs + OUTPUT_BYTES[self.dtype] * math.prod(self.stored_shape("c"))


def parse_case(text: str, family: str = NO_FAMILY) -> GemmCase:
    op, _, rest = text.partition(":")
    if op != "gemm":
        raise ValueError(f"{text!r}: only gemm problems are compared here")
    fields = dict(part.partition("=")[::2] for part in rest.split(","))
    for name in NEEDED:
        if name not in fields:
            raise ValueError(f"{text!r}: {name}= is missing; need {', '.join(NEEDED)}")
    for name in fields:
        if name not in NEEDED + OPTIONAL:
            raise ValueError(f"{text!r}: {name}= has no counterpart in torch.mm; leave it out")
    sizes = {name: fields[name] for name in ("m", "n", "k", "batch") if name in fields}
    for name, value in sizes.items():
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"{text!r}: {name}={value}; need a whole number of at least 1")
    if fields["dtype"] not in ELEMENT_BYTES:
        raise ValueError(f"{text!r}: torch.mm has no {fields['dtype']}; need one of {', '.join(ELEMENT_BYTES)}")
    if not re.fullmatch("[rc]{3}", fields["layout"]):
        raise ValueError(f"{text!r}: layout={fields['layout']}; need three letters of r and c")
    if fields.get("math", "strict") not in ("strict", "fast") or ("math" in fields and fields["dtype"] != "fp8"):
        raise ValueError(f"{text!r}: math={fields['math']} has no counterpart; math=fast is for fp8")
    return GemmCase(text, family, dtype=fields["dtype"], layout=fields["layout"], math=fields.get("math", "strict"),
                    **{name: int(value) for name, value in sizes.items()})


def read_lines(lines: str, parse) -> list:
    """Joins the lists that parse(text, family) gives for each line with a problem."""
    cases: list = []
    for number, line in enumerate(lines.splitlines(), 1):
        text, _, family = (part.strip() for part in line.partition("#"))
        if not text:
            continue
        try:
            cases += parse(text, family or NO_FAMILY)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return cases


def parse_cases(lines: str) -> list[GemmCase]:
    return read_lines(lines, lambda text, family: [parse_case(text, family)])


def choose_cases(cases: list[GemmCase], only: str | None, limit: int | None) -> list[GemmCase]:
    """Those whose "family text" the pattern is found in, the first `limit` of them."""
    found = [case for case in cases if only is None or re.search(only, f"{case.family} {case.text}")]
    return found[:limit]


@dataclasses.dataclass(frozen=True)
class Peaks:
    """The best that a device can do; zeros where no arch file knows it."""

    tflops: dict[str, float]
    memory_gbps: float = 0
    launch_us: float = 2  # a launch that follows another in a graph

    def roof_us(self, case: GemmCase) -> float:
        """The least time: the larger of arithmetic at the peak and each operand moved once; 0 if not known."""
        peak = self.tflops.get(case.dtype, 0)
        if not peak or not self.memory_gbps:
            return 0
        return max(case.flops / peak / 1e6, case.bytes / self.memory_gbps / 1e3)


def read_peaks(major: int, minor: int, folder: pathlib.Path = ROOT / "arch") -> Peaks:
    """The peaks of the chip in the arch file for a compute capability."""
    for path in sorted(folder.glob(f"sm_{major}{minor}*.json")):
        chip = json.loads(path.read_text(encoding="utf-8"))["chip"]
        peaks = json.loads((folder.parent / "chips" / f"{chip}.json").read_text(encoding="utf-8"))["peaks"]
        return Peaks(peaks["tflops"], peaks["memory_gbps"], peaks["launch_us"])
    return Peaks({})
