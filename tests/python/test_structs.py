# SPDX-License-Identifier: MIT
"""The ctypes declarations against include/tilewise/tilewise.h: sizes and offsets by the C compiler, names by reading."""
import ctypes
import pathlib
import re
import subprocess

import pytest

import tilewise
from tilewise import _library, _structs

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = (ROOT / "include/tilewise/tilewise.h").read_text(encoding="utf-8")


def test_structs_are_laid_out_as_in_c(tmp_path):
    lines = ["#include <stdio.h>", "#include <tilewise/tilewise.h>", "int main(void) {"]
    expected = []
    for struct in _structs.STRUCTS:
        lines.append(f'printf("{struct.c_name} %zu\\n", sizeof({struct.c_name}));')
        expected.append(f"{struct.c_name} {ctypes.sizeof(struct)}")
        for name, _ in struct._fields_:
            place = f"offsetof({struct.c_name}, {name}), sizeof((({struct.c_name}*)0)->{name})"
            lines.append(f'printf("{name} %zu %zu\\n", {place});')
            field = getattr(struct, name)
            expected.append(f"{name} {field.offset} {field.size}")
    source = tmp_path / "layout.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT / 'include'}", "-o",
                    tmp_path / "layout", source], check=True)
    assert subprocess.run([tmp_path / "layout"], capture_output=True, text=True).stdout.splitlines() == expected


def test_every_struct_and_field_of_the_header_is_there():
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    found = {name: re.findall(r"(\w+)(?:\[\d+\])?;", body)
             for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", code, flags=re.S)}
    assert found == {struct.c_name: [name for name, _ in struct._fields_] for struct in _structs.STRUCTS}


def test_every_function_of_the_header_is_there():
    found = set(re.findall(r"TILEWISE_API[^;(]*?(tilewise_\w+)\(", HEADER))
    assert found == set(_structs.FUNCTIONS)
    for name, (_, arguments) in _structs.FUNCTIONS.items():
        declared = re.search(name + r"\(([^)]*)\)", HEADER[HEADER.index("TILEWISE_API const char*"):])[1]
        count = 0 if declared == "void" else declared.count(",") + 1
        assert count == len(arguments), name


def test_numbers_that_c_would_cut_are_refused():
    with pytest.raises(OverflowError, match="threads: 4294967297 does not fit 32 bits"):
        tilewise.Dispatcher("cpu", threads=2**32 + 1).describe()
    with pytest.raises(ctypes.ArgumentError, match="does not fit 64 bits"):
        _library.call_text("tilewise_registry_name_at", None, 2**64)
    with pytest.raises(ctypes.ArgumentError, match="does not fit 32 bits"):
        _library.call("tilewise_build", "[]", 2**32 + 1)


def test_status_codes_are_those_of_the_header():
    declared = {name: int(value) for name, value in re.findall(r"TILEWISE_(\w+) = (\d+)", HEADER)}
    for code, error in _library._ERRORS.items():
        assert f"{error.__name__.removesuffix('Error').upper()}" == next(
            name.replace("_", "") for name, value in declared.items() if value == code)
