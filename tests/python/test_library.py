# SPDX-License-Identifier: MIT
"""The libraries that libtilewise.so needs, and the symbols it shows: the C runtime and C++ runtime only, and no symbol beyond the C API and the original's
functions.
"""
import pathlib
import re
import subprocess

LIBRARY = pathlib.Path(__file__).resolve().parents[2] / "build/lib/libtilewise.so"
# The dynamic loader (ld-linux) is a part of libc; thread-local variables refer to it.
ALLOWED = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|ld-linux[\w-]*)\.so\.\d+")


def output_of(*command):
    return subprocess.run([*command, LIBRARY], capture_output=True, text=True, check=True).stdout


def test_needs_only_the_runtime_libraries():
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d"))
    assert needed
    assert [name for name in needed if not ALLOWED.fullmatch(name)] == []


def test_shows_only_the_c_api():
    names = [line.split()[-1] for line in output_of("nm", "-D", "--defined-only").splitlines()]
    names = [name.split("@")[0] for name in names if not re.fullmatch(r"[A-Z]+_\d+", name)]  # the version nodes themselves
    assert "tilewise_version" in names
    original = (LIBRARY.parents[2] / "include/tilewise/original.h").read_text(encoding="utf-8")
    others = {name for name in names if not name.startswith("tilewise_")}
    assert others == set(re.findall(r"^TILEWISE_API[^;(]*?(\w+)\(", original, flags=re.M))
