# SPDX-License-Identifier: MIT
"""tilewise problems: the sets that come with the command, and --problems SET wherever a file may stand."""
import hashlib

import pytest


def lines_of(text):
    """[(problem, family)] of a file or of what the command printed."""
    parts = [line.partition("#") for line in text.splitlines() if not line.startswith("#")]
    return [(problem.strip(), family.strip()) for problem, _, family in parts]


@pytest.fixture(scope="module")
def files(root):
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((root / "problems").glob("*.txt"))}


def test_the_list_has_every_file(ask, run, files):
    answer = ask("problems")
    assert answer["count"] == len(answer["sets"]) == len(files) == 24
    for found, (name, text) in zip(answer["sets"], files.items()):
        lines = lines_of(text)
        assert found["name"] == name and found["size"] == len(lines)
        assert found["hash"] == hashlib.sha256("".join(f"{line[0]}\n" for line in lines).encode()).hexdigest()[:16]
        assert f"hash {found['hash']};" in text  # its header says the same
        assert found["families"] == {family: [line[1] for line in lines].count(family) for _, family in lines}
    table = [line.split() for line in run("problems").out.splitlines()]
    assert table[0] == ["set", "size", "hash", "families"]
    assert [row[:3] for row in table[1:]] == [[s["name"], str(s["size"]), s["hash"]] for s in answer["sets"]]
    assert [row[3:] for row in table[1:]] == [sorted(s["families"]) for s in answer["sets"]]


def test_a_set_is_printed_as_its_file_has_it(ask, run, files):
    out = run("problems", "bwd_data_test").out
    assert lines_of(out) == lines_of(files["bwd_data_test"])
    facts = ask("problems", "bwd_data_test")
    assert out.startswith(f"# bwd_data_test: 300 problems, hash {facts['hash']}\n")
    assert [(entry["problem"], entry["family"]) for entry in facts["problems"]] == lines_of(out)


def test_part_of_a_set_has_a_hash_of_its_own(ask, files):
    whole, part = ask("problems", "gemm_test"), ask("problems", "gemm_test", "--first", "60")
    assert part["size"] == 60 and part["problems"] == whole["problems"][:60] and part["hash"] != whole["hash"]


@pytest.mark.parametrize("name, dtype", [("cpu_gemm_test", "bf16"), ("gemm_test", "fp8"), ("forward_test", "int8")])
def test_a_set_in_another_type_has_the_same_shapes(ask, name, dtype):
    own, other = ask("problems", name)["problems"], ask("problems", name, "--dtype", dtype)["problems"]
    before = "fp32" if name.startswith("cpu_") else "bf16"
    assert [p["problem"].replace(f"dtype={before}", f"dtype={dtype}") for p in own] == [p["problem"] for p in other]


@pytest.mark.parametrize("words, code, message", [
    (["gemm_tset"], 2, "unknown problem set 'gemm_tset'; one of: bwd_data_test, "),
    (["gemm_test", "--first", "0"], 2, "from 1 to 300, the size of gemm_test, not '0'"),
    (["gemm_test", "--first", "301"], 2, "from 1 to 300"),
    (["gemm_test", "--first", "some"], 2, "not 'some'"),
    (["gemm_test", "--dtype", "bf61"], 2, "bf16"),
    (["bwd_data_test", "--dtype", "int8"], 3, "bwd_data_test in int8: have conv_bwd_data in int8; need conv_fwd"),
    (["--first", "3"], 2, "--first needs the name of a set"),
    (["--dtype", "fp16"], 2, "--dtype needs the name of a set"),
])
def test_refused(run, words, code, message):
    answer = run("problems", *words)
    assert answer.code == code and not answer.out and message in answer.err, answer


@pytest.mark.parametrize("command", ["bench", "tune"])
def test_an_unknown_list_names_the_sets(run, command, files):
    answer = run(command, "--problems", "gemm_tset")
    assert answer.code == 2 and "cannot read 'gemm_tset'" in answer.err, answer
    assert all(name in answer.err for name in files)


def test_a_set_stands_where_a_file_may(run):
    """Its problems are read before the device, which is not there, is opened."""
    answer = run("tune", "--problems", "gemm_test", "--device", "cuda:99")
    assert answer.code == 5, answer


def test_a_file_of_a_set_is_reached_by_its_path(run, tmp_path):
    (tmp_path / "gemm_test").write_text("gemm:m=8\n", encoding="utf-8")
    answer = run("bench", "--problems", tmp_path / "gemm_test")
    assert answer.code == 2 and f"{tmp_path}/gemm_test:1: " in answer.err, answer
