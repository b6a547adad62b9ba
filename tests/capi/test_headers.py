# SPDX-License-Identifier: MIT
"""The public headers by themselves: each compiles alone, as C11 and C++ where it is C; and the library exports what they
declare, under a version, and nothing else.
"""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
C_HEADERS = ("tilewise/tilewise.h", "tilewise/original.h")
CPP_HEADERS = sorted(path.relative_to(INCLUDE).as_posix() for path in (INCLUDE / "tilewise").glob("*.hpp"))
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only"]


def compiles(compiler, standard, language, header):
    # Twice: a header may be included by several others.
    done = subprocess.run([compiler, f"-std={standard}", *STRICT, f"-I{INCLUDE}", "-x", language, "-"],
                          input=f"#include <{header}>\n" * 2, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", C_HEADERS)
@pytest.mark.parametrize("compiler, standard, language",
                         [("gcc", "c11", "c"), ("gcc", "c99", "c"), ("g++", "c++11", "c++"), ("g++", "c++20", "c++")])
def test_c_headers_are_c_and_cpp(compiler, standard, language, header):
    compiles(compiler, standard, language, header)


@pytest.mark.parametrize("header", CPP_HEADERS)
def test_cpp_headers_stand_alone(header):
    compiles("g++", "c++20", "c++", header)


def declared(header):
    code = (INCLUDE / header).read_text(encoding="utf-8")
    return set(re.findall(r"^TILEWISE_API[^;(]*?(\w+)\(", code, flags=re.M))


def exported(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", ROOT / "build" / "lib" / library], capture_output=True,
                             text=True, check=True).stdout
    return {tuple(line.split()[-1].split("@@")) for line in listing.splitlines() if " A " not in line}


def test_the_library_exports_what_is_declared_under_versions():
    expected = {(name, "TILEWISE_1") for name in declared("tilewise/tilewise.h")}
    expected |= {(name, "DISPATCHER_1") for name in declared("tilewise/original.h")}
    assert exported("libtilewise.so") == expected


def test_the_thin_libraries_share_the_original_functions_among_them():
    parts = [exported(f"libdispatcher_{part}_lib.so") for part in ("gemm", "conv", "conv_bwdw")]
    assert sum(map(len, parts)) == len(set.union(*parts))
    assert set.union(*parts) == {(name, "DISPATCHER_1") for name in declared("tilewise/original.h")}
