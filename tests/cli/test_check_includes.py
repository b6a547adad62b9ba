# SPDX-License-Identifier: MIT
"""tools/check_includes lets a good tree pass and catches each kind of include it is there to forbid."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD = {
    "src/base/text.hpp": "#include <string>\n",
    "src/config/config.cpp": '#include "base/text.hpp"\n#include <fmt/format.h>\n#include "tilewise/tilewise.h"\n',
    "src/device/cpu/cpu.cpp": '#include "config/config.hpp"\n',
    "src/family/hip/gemm.cpp": '#include "family/gpu/grid.hpp"\n',
    "include/tilewise/tilewise.h": "#include <stddef.h>\n",
    "include/tilewise/problem.hpp": '#include <string>\n#include "tilewise/tilewise.h"\n',
    "kernels/common/tile.h": "// nothing\n",
    "kernels/cpu/gemm.h": '#include "common/tile.h"\n',
    "kernels/cuda/primitives.h": '#include "../gpu/types.h"\n',
    "kernels/gpu/types.h": '#include "../common/tile.h"\n',
}


def check(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, ROOT / "tools/check_includes", folder]
    return subprocess.run(command, capture_output=True, text=True)


def test_good_tree_passes(tmp_path):
    result = check(tmp_path, GOOD)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("file, line", [
    ("src/base/bad.cpp", '#include "config/config.hpp"'),  # backwards
    ("src/base/bad.cpp", "#  include <config/config.hpp>"),  # backwards, in other clothes
    ("src/select/deep/bad.hpp", '#include "cli/cli.hpp"'),
    ("src/base/bad.cpp", '#include "../config/config.hpp"'),  # around the order
    ("src/base/bad.cpp", '#include "text.hpp"'),  # without the module
    ("src/family/hip/bad.cpp", '#include "family/cuda/work.hpp"'),  # another backend's
    ("src/family/gpu/bad.cpp", '#include "family/cuda/work.hpp"'),
    ("src/family/cpu/bad.cpp", '#include "family/gpu/grid.hpp"'),
    ("src/stray/bad.cpp", '#include "base/text.hpp"'),  # a folder outside the order
    ("include/tilewise/bad.h", '#include "base/text.hpp"'),
    ("include/tilewise/bad.h", "#include <fmt/format.h>"),
    ("include/tilewise/bad.h", "#include <tilewise/missing.h>"),
    ("kernels/cpu/bad.h", "#include <immintrin.h>"),
    ("kernels/cpu/bad.h", '#include "base/text.hpp"'),
    ("kernels/cpu/bad.h", '#include "../../src/base/text.hpp"'),
    ("kernels/gpu/bad.h", '#include "../cuda/primitives.h"'),
])
def test_bad_include_is_caught(tmp_path, file, line):
    result = check(tmp_path, {**GOOD, file: f"// a comment\n{line}\n"})
    assert result.returncode == 1
    assert f"{file}:2: " in result.stderr
    assert len(result.stderr.splitlines()) == 1


DECLARES = {"src/config/family.hpp": "enum class FamilyId { gemm };\n", "src/config/all.hpp": '#include "config/family.hpp"\n'}


@pytest.mark.parametrize("include, passes", [("config/family.hpp", True), ("config/all.hpp", True), ("base/text.hpp", False)])
def test_a_type_comes_with_its_header(tmp_path, include, passes):
    source = f'#include "{include}"\n// FamilyId in a comment\nconst FamilyId id = FamilyId::gemm;\n'
    result = check(tmp_path, {**GOOD, **DECLARES, "src/family/grid.cpp": source})
    assert (result.returncode == 0) == passes, result.stderr
    assert passes or "src/family/grid.cpp:3: FamilyId: include src/config/family.hpp" in result.stderr


@pytest.mark.parametrize("declaration", ["struct FamilyId {};", "class Grid::FamilyId {};"])
def test_a_type_of_its_own_needs_no_header(tmp_path, declaration):
    result = check(tmp_path, {**GOOD, **DECLARES, "src/family/grid.cpp": f"{declaration}\nconst FamilyId id;\n"})
    assert result.returncode == 0, result.stderr


CALLS = {"src/problem/facts.hpp": "bool has_bias(const Problem& problem);\n", "src/problem/all.hpp": '#include "problem/facts.hpp"\n'}


@pytest.mark.parametrize("include, passes", [("problem/facts.hpp", True), ("problem/all.hpp", True), ("base/text.hpp", False)])
def test_a_function_comes_with_its_header(tmp_path, include, passes):
    source = f'#include "{include}"\n// has_bias(p) in a comment\nbool ends(const int& p) {{ return p && has_bias(p); }}\n'
    result = check(tmp_path, {**GOOD, **CALLS, "src/family/ends.cpp": source})
    assert (result.returncode == 0) == passes, result.stderr
    assert passes or "src/family/ends.cpp:3: has_bias: include src/problem/facts.hpp" in result.stderr


@pytest.mark.parametrize("declaration", ["bool has_bias(int p) { return p; }", "const auto has_bias = [](int p) { return p; };",
                                         "struct S { bool has_bias(int p); bool f() { return has_bias(1); } };"])
def test_a_function_of_its_own_needs_no_header(tmp_path, declaration):
    result = check(tmp_path, {**GOOD, **CALLS, "src/family/ends.cpp": f"{declaration}\nconst bool b = has_bias(1);\n"})
    assert result.returncode == 0, result.stderr


def test_folder_without_sources_is_an_error(tmp_path):
    result = check(tmp_path, {})
    assert result.returncode == 1 and "no folder src" in result.stderr
