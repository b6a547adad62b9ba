# SPDX-License-Identifier: MIT
"""The Python reference is what tools/python_reference makes of the package, and every public name has its words."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_it_is_current():
    done = subprocess.run([sys.executable, ROOT / "tools/python_reference", "--check"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


def test_every_public_name_has_its_words():
    page = (ROOT / "docs/reference-python.md").read_text(encoding="utf-8")
    entries = re.split(r"^### ", page, flags=re.M)[1:]
    silent = []
    for entry in entries:
        title, _, rest = entry.partition("\n")
        own = re.split(r"^####? ", rest, flags=re.M)[0]
        if not re.sub(r"```python\n.*?```|^## .*|^- .*|\s", "", own, flags=re.S | re.M):
            silent.append(title)
    assert len(entries) > 80 and silent == []
