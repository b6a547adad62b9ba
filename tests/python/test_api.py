# SPDX-License-Identifier: MIT
"""The Python package against the real library of this checkout: answers, errors, and where the library is found."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import tilewise

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build/lib/libtilewise.so"
PROBLEM = "gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr"
ODD = "gemm:m=1023,n=1021,k=1019,dtype=bf16,layout=rcr"


def cli(*arguments):
    result = subprocess.run([ROOT / "build/bin/tilewise", *arguments, "--json"], capture_output=True, text=True)
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def gemm_kernels():
    return tilewise.kernels(op="gemm", arch="gfx942", dtype="bf16")


def test_version_is_the_one_of_the_build():
    released, _, _commit = tilewise.__version__.partition("+")
    assert f"project(tilewise VERSION {released} " in (ROOT / "CMakeLists.txt").read_text()


def test_kernels_are_those_of_the_cli(gemm_kernels):
    answer = cli("kernels", "--op", "gemm", "--arch", "gfx942", "--dtype", "bf16")
    assert answer["count"] == len(gemm_kernels) > 0
    assert [kernel["id"] for kernel in answer["kernels"]] == [kernel.id for kernel in gemm_kernels]


def test_kernels_hold_what_they_are(gemm_kernels):
    kernel = gemm_kernels[0]
    assert kernel.name.startswith("gemm_bf16_")
    assert isinstance(kernel.available, bool)
    assert isinstance(kernel.config, dict) and kernel.config
    assert kernel.name in repr(kernel) and "config" not in repr(kernel)
    assert len(set(gemm_kernels)) == len(gemm_kernels)


def test_rule_set_is_passed_on(gemm_kernels):
    tiny = tilewise.kernels(op="gemm", arch="gfx942", dtype="bf16", rule_set="tiny")
    assert 0 < len(tiny) != len(gemm_kernels)
    assert tilewise.kernels(op="gemm", arch="gfx942", dtype="bf16", rule_set="default") == gemm_kernels


def test_select_is_that_of_the_cli():
    plan = tilewise.select(PROBLEM, arch="gfx942")
    answer = cli("select", PROBLEM, "--arch", "gfx942")
    assert plan and plan.kernel == answer["plan"]["kernel"]
    assert plan.source and plan.why
    assert plan.candidates and plan.candidates[0].name
    assert plan.kernel in repr(plan)


def test_explain_says_what_was_rejected_and_why():
    selection = tilewise.select(ODD, arch="gfx942")
    assert selection.rejected
    assert all(item.name and item.rule and str(item.have) and str(item.need) for item in selection.rejected)


def test_check_accepts_every_form(gemm_kernels):
    kernel = gemm_kernels[0]
    for form in (kernel, kernel.name, kernel.config, json.dumps(kernel.config)):
        answer = tilewise.check(form)
        assert answer.valid and not answer.violations


@pytest.mark.parametrize("call", [
    lambda: tilewise.kernels(op="nonsense"),
    lambda: tilewise.kernels(arch="nonsense"),
    lambda: tilewise.kernels(rule_set="nonsense"),
    lambda: tilewise.kernels(dtype="nonsense"),
    lambda: tilewise.select("nonsense", arch="gfx942"),
    lambda: tilewise.select(PROBLEM, arch="nonsense"),
    lambda: tilewise.select("", arch="gfx942"),
    lambda: tilewise.select(PROBLEM + "\0,junk", arch="gfx942"),
    lambda: tilewise.select("\udc80", arch="gfx942"),
    lambda: tilewise.check("nonsense"),
    lambda: tilewise.check("{"),
])
def test_bad_input_is_a_usage_error(call):
    with pytest.raises(tilewise.UsageError) as caught:
        call()
    assert caught.value.code == 2
    assert len(str(caught.value)) > 10 and str(caught.value) == caught.value.message


def test_impossible_problem_names_the_rule():
    with pytest.raises(tilewise.UnsupportedError, match="size_positive.*m=-1"):
        tilewise.select("gemm:m=-1,n=1,k=1,dtype=fp32,layout=rcr", arch="gfx942")


@pytest.mark.parametrize("call", [lambda: tilewise.select(42), lambda: tilewise.check(42)])
def test_wrong_type_is_a_type_error(call):
    with pytest.raises(TypeError, match="expected"):
        call()


def test_errors_of_threads_do_not_mix():
    def provoke(index):
        with pytest.raises(tilewise.UsageError) as caught:
            tilewise.kernels(arch=f"nonsense{index}")
        return f"nonsense{index}" in str(caught.value)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(provoke, range(200)))


def import_in_child(environment=None, path=ROOT / "python"):
    """Imports the package in a bare interpreter (-S: the standard library alone), from `path`."""
    code = f"import sys; sys.path.insert(0, {os.fspath(path)!r}); import tilewise; print(tilewise.__version__)"
    clean = {key: value for key, value in os.environ.items() if key != "TILEWISE_LIBRARY"}
    return subprocess.run([sys.executable, "-S", "-E", "-c", code], env={**clean, **(environment or {})},
                          capture_output=True, text=True)


def test_import_needs_the_standard_library_alone():
    result = import_in_child()
    assert result.stdout.strip() == tilewise.__version__, result.stderr


def test_library_inside_the_package_is_found(tmp_path):
    shutil.copytree(ROOT / "python/tilewise", tmp_path / "site/tilewise")
    result = import_in_child(path=tmp_path / "site")
    assert result.returncode != 0 and "ImportError" in result.stderr
    assert os.fspath(tmp_path / "site/tilewise/lib/libtilewise.so") in result.stderr  # the places tried
    assert os.fspath(tmp_path / "build/lib/libtilewise.so") in result.stderr

    (tmp_path / "site/tilewise/lib").mkdir()
    shutil.copy(LIBRARY, tmp_path / "site/tilewise/lib")
    result = import_in_child(path=tmp_path / "site")
    assert result.returncode == 0, result.stderr


def test_library_named_by_the_environment_wins(tmp_path):
    assert import_in_child({"TILEWISE_LIBRARY": os.fspath(LIBRARY)}).returncode == 0
    result = import_in_child({"TILEWISE_LIBRARY": os.fspath(tmp_path / "missing.so")})
    assert "ImportError" in result.stderr and "missing.so" in result.stderr
    junk = tmp_path / "junk.so"
    junk.write_text("junk")
    result = import_in_child({"TILEWISE_LIBRARY": os.fspath(junk)})
    assert "ImportError" in result.stderr and "not a usable tilewise library" in result.stderr


def test_library_of_another_abi_is_refused(tmp_path):
    source = tmp_path / "other.c"
    source.write_text("int tilewise_abi_version(void) { return 1000; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "other.so", source], check=True)
    result = import_in_child({"TILEWISE_LIBRARY": os.fspath(tmp_path / "other.so")})
    assert "ImportError" in result.stderr and "ABI version 1000" in result.stderr
