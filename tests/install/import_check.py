# SPDX-License-Identifier: MIT
"""Shows that the installed package works by itself, away from the checkout, and runs the README's Python program. Run by
`make test-pip`.
"""
import pathlib
import re
import subprocess
import sys

import tilewise
from tilewise import _library

inside = pathlib.Path(sys.prefix).resolve()
for what in (tilewise.__file__, _library._library._name):
    if inside not in pathlib.Path(what).resolve().parents:
        sys.exit(f"import_check: {what} is not inside {inside}")
package = pathlib.Path(tilewise.__file__).resolve().parent
for needed in ("include/tilewise/tilewise.h", "torch/csrc/ops.cpp", "torch/csrc/plans.hpp"):  # the C++ ops of tilewise.torch
    if not (package / needed).is_file():
        sys.exit(f"import_check: {needed} is not in the package")
if not tilewise.kernels(op="gemm", arch="gfx942"):
    sys.exit("import_check: no kernels")
readme = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
program = re.search(r"<!-- tested -->\n```python\n(.*?)```", readme, flags=re.S)
exec(compile(program[1], "README.md", "exec"))
for command in ([sys.executable, "-I", "-m", "tilewise"], [str(pathlib.Path(sys.prefix) / "bin" / "tilewise")]):
    told = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    if told != f"tilewise {tilewise.__version__}\n":
        sys.exit(f"import_check: {command} says {told!r}")
print(f"import_check: tilewise {tilewise.__version__} works")
