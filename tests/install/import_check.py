# SPDX-License-Identifier: MIT
"""Shows that the installed package works by itself, away from the checkout, and runs the README's Python program. Run by
`make test-pip`.
"""
import pathlib
import re
import sys

import tilewise
from tilewise import _library

inside = pathlib.Path(sys.prefix).resolve()
for what in (tilewise.__file__, _library._library._name):
    if inside not in pathlib.Path(what).resolve().parents:
        sys.exit(f"import_check: {what} is not inside {inside}")
if not tilewise.kernels(op="gemm", arch="gfx942"):
    sys.exit("import_check: no kernels")
readme = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
program = re.search(r"<!-- tested -->\n```python\n(.*?)```", readme, flags=re.S)
exec(compile(program[1], "README.md", "exec"))
print(f"import_check: tilewise {tilewise.__version__} works")
