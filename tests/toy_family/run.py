#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds a family to a copy of the tree in the four places that HACKING names, builds the command, and has it list, check, explain and
run a kernel of it. Run by `make test-toy-family`: python tests/toy_family/run.py FOLDER
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
PROBLEM = "gemm:m=37,n=29,k=53,dtype=fp32,layout=rrr"


def insert(path, before, text):
    """Puts a text in front of another, of which there is one."""
    whole = path.read_text(encoding="utf-8")
    assert whole.count(before) == 1, f"{path}: {whole.count(before)} times {before!r}"
    path.write_text(whole.replace(before, text + before), encoding="utf-8")


def copy_tree(folder):
    shutil.rmtree(folder, ignore_errors=True)
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, files):
        if name.startswith(("docs/", "examples/", "python/", "benchmarks/")) or not (ROOT / name).is_file():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def add_family(tree):
    """The four places."""
    # 1. Its name, and what makes a config one of its own.
    name = tree / "src/config/family_id.hpp"
    insert(name, "};\ntemplate <>", "    toy_gemm,\n")
    insert(name, "});\n};\n\n// By the fields alone", ', "toy_gemm"')
    insert(tree / "src/config/family_id.cpp", "    if (c.op == Op::gemm) return FamilyId::blocked_gemm;\n",
           "    if (c.op == Op::gemm && c.tile.m == c.warp_tile.m) return FamilyId::toy_gemm;\n")
    # 2. Its row.
    shutil.copy(HERE / "toy_gemm.cpp", tree / "src/family/cpu")
    insert(tree / "src/family/families.hpp", "// cuda/\n", "extern const Family kToyGemm;\n")
    insert(tree / "src/family/families.cpp", "    &kMmaGemm,\n", "    &kToyGemm,\n")
    # 3. Its template.
    (tree / "kernels/cpu/toy_gemm").mkdir()
    shutil.copy(HERE / "toy_gemm.hpp", tree / "kernels/cpu/toy_gemm")
    # 4. Its recipe.
    shutil.copy(HERE / "toy_gemm.json", tree / "recipes/cpu")


def build(tree):
    out = tree / "out"
    subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", out, "-DCMAKE_CXX_FLAGS_RELEASE=-O0", "-DTILEWISE_BUILD_TESTS=OFF",
                    "-DTILEWISE_UNITE=ON"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", out, "--target", "tilewise_stage1"], check=True, stdout=subprocess.DEVNULL)
    return out / "bin" / "tilewise_stage1"


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    copy_tree(tree)
    add_family(tree)
    command = build(tree)
    os.environ["TILEWISE_CACHE_DIR"] = str(tree / "cache")

    def ask(*words):
        done = subprocess.run([command, *words, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    families = {family["name"]: family for family in ask("kernels", "--families")["families"]}
    assert families["toy_gemm"]["kernels"] > 0, families["toy_gemm"]
    kernels = [kernel for kernel in ask("kernels", "--arch", "cpu-avx2", "--op", "gemm")["kernels"] if kernel["family"] == "toy_gemm"]
    assert kernels and all(kernel["available"] for kernel in kernels), kernels
    name = kernels[0]["name"]
    assert ask("check", name)["valid"]
    ran = ask("run", PROBLEM, "--arch", "cpu-avx2", "--kernel", name, "--validate")
    assert ran["validation"]["ok"], ran
    assert name in [candidate["name"] for candidate in ask("select", PROBLEM, "--arch", "cpu-avx2")["candidates"]]
    print(f"toy family: {len(kernels)} kernels, {name} is right")


main()
