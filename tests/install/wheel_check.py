# SPDX-License-Identifier: MIT
"""Installs a wheel into an empty environment and uses it where PATH has no compiler: doctor, a product on NumPy arrays, tune, and what
a wheel must contain. Run by `make test-dist` with the wheel's file."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ("tilewise/lib/libtilewise.so", "tilewise/bin/tilewise", "tilewise/include/tilewise/tilewise.h", "tilewise/torch/csrc/ops.cpp",
          "tilewise/LICENSE")
PROGRAM = """
import numpy as np, tilewise
a, b = np.random.rand(64, 128).astype(np.float32), np.random.rand(96, 128).astype(np.float32)
np.testing.assert_allclose(tilewise.gemm(a, b), a @ b.T, rtol=1e-4)
print(tilewise.select("gemm:m=64,n=96,k=128,dtype=fp32").kernel)
"""
SECONDS = 60


def contents(wheel):
    assert re.fullmatch(r"tilewise-[\d.]+-py3-none-manylinux_\d+_\d+_x86_64\.whl", wheel.name), wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    for needed in NEEDED:
        assert needed in names, f"{needed} is not in {wheel.name}"


def main(wheel):
    contents(wheel)
    place = ROOT / "build" / "wheel-check"
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"{wheel}[numpy]"], check=True)
    environment = {"PATH": os.fspath(place / "bin"), "HOME": os.fspath(place), "TILEWISE_CACHE_DIR": os.fspath(place / "cache")}
    command = place / "bin" / "tilewise"
    steps = ([command, "doctor"], [python, "-I", "-c", PROGRAM],
             [command, "tune", "gemm:m=64,n=96,k=128,dtype=fp32", "conv_fwd:n=1,c=16,k=16,in=8x8,filter=3x3,dtype=fp32"],
             [python, "-I", ROOT / "tests" / "install" / "import_check.py"])
    begin = time.monotonic()
    for words in steps:
        done = subprocess.run(words, env=environment, cwd=place, capture_output=True, text=True, check=False)
        print(done.stdout, end="")
        assert done.returncode == 0, done.stderr
        if words[-1] == "doctor":
            assert "no C++ compiler on PATH" in done.stdout, done.stdout
    seconds = time.monotonic() - begin
    assert seconds < SECONDS, f"{seconds:.0f} s"
    print(f"wheel_check: {wheel.name} works without a compiler, in {seconds:.1f} s")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
