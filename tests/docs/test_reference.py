# SPDX-License-Identifier: MIT
"""The reference pages are what tools/api_reference makes of the public headers, and leave nothing out."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include" / "tilewise"


def test_it_is_current():
    done = subprocess.run([ROOT / "tools" / "api_reference", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_c_function_has_its_words():
    page = (ROOT / "docs" / "reference-c.md").read_text(encoding="utf-8")
    for header in ("tilewise.h", "original.h"):
        code = (INCLUDE / header).read_text(encoding="utf-8")
        functions = re.findall(r"^TILEWISE_API[^;(]*?(\w+)\(", code, flags=re.M)
        assert functions
        for name in functions:
            entry = re.search(rf"#### `{name}`\n\n```c\n.*?```\n\n(\S)", page, flags=re.S)
            assert entry and entry[1] != "#", name


def test_every_cpp_class_is_there():
    page = (ROOT / "docs" / "reference-cpp.md").read_text(encoding="utf-8")
    for header in INCLUDE.glob("*.hpp"):
        for name in re.findall(r"^class (?:\[\[nodiscard\]\] )?(\w+)", header.read_text(encoding="utf-8"), flags=re.M):
            assert re.search(rf"class (\[\[nodiscard\]\] )?{name}\b", page), name
    assert "detail" not in page and "private:" not in page and "return" not in re.sub(r"//.*|return(s|ed) ", "", page)
