# SPDX-License-Identifier: MIT
"""tilewise build and cache: kernels compiled ahead, packed into one file, looked after."""
import subprocess
import sys

import pytest

FULL_SAMPLE = "1/240"  # 43 of some 10,000
POOL = ("--arch", "cpu-generic", "--rule-set", "tiny", "--op", "gemm", "--dtype", "fp32")
GEMM = "gemm:m=40,n=50,k=60,dtype=fp32,layout=rcr"
NO_COMPILER = {"TILEWISE_CXX": "/nonexistent/c++"}


@pytest.fixture(scope="module")
def built(run, quick_compiler, tmp_path_factory):
    """A cache of this module's own, filled by two jobs, and a pack of it: (environment, answer, pack)."""
    folder = tmp_path_factory.mktemp("built")
    env = {"TILEWISE_CACHE_DIR": str(folder / "cache"), "TILEWISE_CXX": quick_compiler}
    pack = folder / "kernels.pack"
    answer = run("build", *POOL, "--jobs", "2", "--pack", str(pack), "--json", env=env)
    assert answer.code == 0, answer
    return env, answer.json, pack


def test_build_compiles_once(run, built):
    env, first, pack = built
    assert set(first) >= {"kernels", "binaries", "compiled", "failed", "without_template", "pack"}
    assert first["binaries"] >= first["compiled"] > 1, "all but those that are built in"
    assert first["failed"] == 0 and first["pack"] == str(pack)
    again = run("build", *POOL, "--json", env={**env, **NO_COMPILER})
    assert again.code == 0 and again.json["compiled"] == 0 and again.json["pack"] is None, again
    people = run("build", *POOL, env=env)
    assert people.code == 0 and f"{first['binaries']} binaries: 0 compiled now" in people.out and not people.err, people


def test_shards_are_parts_of_the_whole(run, built):
    env, whole, _ = built
    parts = [run("build", *POOL, "--shard", f"{i}/3", "--json", env={**env, **NO_COMPILER}) for i in (1, 2, 3)]
    assert [part.code for part in parts] == [0, 0, 0], parts
    assert sum(part.json["binaries"] for part in parts) == whole["binaries"]
    assert all(part.json["binaries"] < whole["binaries"] for part in parts)


def test_sources_of_the_full_set_compile(run, quick_compiler, tmp_path):
    """A fixed sample of the distinct sources of `full`; `make test-builds` compiles them all, as they are for users."""
    answer = run("build", "--arch", "cpu-avx2,cpu-generic", "--rule-set", "full", "--shard", FULL_SAMPLE, "--json",
                 env={"TILEWISE_CACHE_DIR": str(tmp_path / "cache"), "TILEWISE_CXX": quick_compiler}, limit_s=600)
    assert answer.code == 0 and answer.json["failed"] == 0 and answer.json["binaries"] >= 40, answer


def test_a_pack_serves_where_there_is_no_compiler(run, built, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "empty"), **NO_COMPILER}
    words = ("run", GEMM, *POOL[:4], "--validate", "--json")
    assert run(*words, env=env).code == 4
    answer = run(*words, "--pack", str(built[2]), env=env)
    assert answer.code == 0 and answer.json["plan"]["origin"] == "pack" and answer.json["validation"]["ok"], answer
    assert run(*words, env=env).json["plan"]["origin"] == "cache", "what a pack gave stays"


def test_a_damaged_pack_is_refused(run, built, tmp_path):
    path = tmp_path / "cut.pack"
    path.write_bytes(built[2].read_bytes()[:1000])
    answer = run("run", GEMM, *POOL[:4], "--pack", str(path), env=built[0])
    assert answer.code == 4 and "cut.pack" in answer.err, answer


@pytest.mark.parametrize("words, code, told", [
    (["--shard", "0/4"], 2, "--shard"), (["--shard", "5/4"], 2, "--shard"), (["--shard", "1"], 2, "'1'"),
    (["--shard", "1/2/3"], 2, "--shard"), (["--jobs", "0"], 2, "--jobs"), (["--jobs", "x"], 2, "--jobs"), (["--jobs", "99999"], 2, "--jobs"),
    (["--rule-set", "tny"], 2, "did you mean 'tiny'?"), (["--op", "gem"], 2, "did you mean 'gemm'?"),
    (["--arch", "nowhere"], 2, "unknown arch"), (["--dtype", "fp31"], 2, "did you mean"), (["operand"], 2, "operand"),
])
def test_bad_words(cached, words, code, told):
    answer = cached("build", *words)
    assert answer.code == code and told in answer.err and not answer.out, answer


def test_pack_is_explained_once(run):
    assert run("build", "--help").out.count("--pack") == 1 == run("run", "--help").out.count("--pack")


CUDA_POOL = ("--arch", "sm_80", "--rule-set", "tiny", "--op", "gemm", "--dtype", "fp32", "--shard", "1/4")


def test_a_pack_for_cuda_has_ptx_for_later_chips(run, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "cache")}
    plain = run("build", *CUDA_POOL, "--json", env=env)
    if plain.code == 4 and "NVRTC" in plain.err:
        pytest.skip("no NVRTC on this machine")
    assert plain.code == 0 and plain.json["ptx"] == 0, plain
    pack = tmp_path / "kernels.pack"
    packed = run("build", *CUDA_POOL, "--pack", str(pack), "--json", env=env)
    with_padding = plain.json["binaries"] + 1  # a pack has the kernel that pads tensors, too
    assert packed.code == 0 and packed.json["ptx"] == with_padding > 1, packed
    assert packed.json["binaries"] == 2 * with_padding and packed.json["compiled"] == with_padding + 1
    elsewhere = {"TILEWISE_CACHE_DIR": str(tmp_path / "other"), "TILEWISE_PACKS": str(pack),
                 "TILEWISE_NVRTC": "/nonexistent"}
    from_it = run("build", *CUDA_POOL, "--pack", str(tmp_path / "again.pack"), "--json", env=elsewhere)
    assert from_it.code == 0 and from_it.json["compiled"] == 0, from_it
    by_kernel = {}
    for entry in run("cache", "ls", "--json", env=elsewhere).json["entries"]:
        by_kernel.setdefault(entry["kernel"], set()).add(entry["path"].rpartition("/")[2])
    assert len(by_kernel) == with_padding and any(name.startswith("pad_rows@") for name in by_kernel)
    assert all(files == {"kernel.cubin", "kernel.ptx"} for files in by_kernel.values())
    assert f"{packed.json['ptx']} of them PTX" in run("build", *CUDA_POOL, "--pack", str(pack), env=env).out


LAYERS = f"""# two layers, and one of them again
{GEMM}
{GEMM},epilogue=bias+relu   # the same kernel: on a CPU a chain is no code of its own
conv_fwd:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=fp32
{GEMM}
"""


def test_build_for_problems(run, quick_compiler, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "cache"), "TILEWISE_CXX": quick_compiler}
    words = ("--problems", "-", "--arch", "cpu-generic", "--json")
    pack = tmp_path / "layers.pack"
    answer = run("build", *words, "--pack", str(pack), stdin=LAYERS, env=env)
    assert answer.code == 0 and answer.json["problems"] == 4 and answer.json["binaries"] == 2, answer
    assert answer.json["failed"] == 0
    (tmp_path / "layers.txt").write_text(LAYERS)
    same = run("build", "--problems", str(tmp_path / "layers.txt"), *words[2:], env={**env, **NO_COMPILER})
    assert same.code == 0 and same.json["compiled"] == 0, same
    assert run("build", *words, "--top", "2", "--most", "1", stdin=LAYERS, env=env).json["kernels"] == 1
    elsewhere = {"TILEWISE_CACHE_DIR": str(tmp_path / "other"), **NO_COMPILER}
    served = run("run", GEMM, "--arch", "cpu-generic", "--pack", str(pack), "--strict", "--json", env=elsewhere)
    assert served.code == 0 and served.json["plan"]["origin"] == "pack", served


def test_what_a_sweep_measures_is_built_ahead(run, quick_compiler, tmp_path):
    problems, pack = tmp_path / "layers.txt", tmp_path / "sweep.pack"
    problems.write_text(LAYERS)
    pool = ("--problems", str(problems), "--kernels", "sample", "--seed", "3", "--arch", "cpu-generic", "--rule-set", "tiny")
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "cache"), "TILEWISE_CXX": quick_compiler}
    built = run("build", *pool, "--threads", "1", "--pack", str(pack), "--json", env=env)
    assert built.code == 0 and built.json["binaries"] > 5, built
    elsewhere = {"TILEWISE_CACHE_DIR": str(tmp_path / "other"), **NO_COMPILER}
    swept = run("sweep", *pool, "--threads", "1", "--pack", str(pack), "--out", str(tmp_path / "out.csv"), "--json", env=elsewhere)
    records = swept.json["records"]
    assert swept.code == 0 and records["ok"] == sum(records.values()) > 10, swept


@pytest.mark.parametrize("words", [["--dtype", "fp16"], ["--dtype", "bf16", "--epilogue", "bias+add+relu"]])
def test_the_layers_of_common_networks_are_problems(cached, root, words):
    made = subprocess.run([sys.executable, root / "problems" / "common_layers.py", *words], capture_output=True, text=True,
                          check=True)
    lines = made.stdout.splitlines()
    assert len(lines) == len(set(lines)) > 300
    answer = cached("build", "--problems", "-", "--arch", "cpu-generic", "--most", "1", "--json", stdin=made.stdout)
    assert answer.code == 0 and answer.json["problems"] == len(lines) and answer.json["binaries"] == 1, answer


@pytest.mark.parametrize("text, words, told", [
    ("gemm:m=3", [], "standard input:1: "), (f"\n{GEMM}\nconv:x=1", [], "standard input:3: "), ("# none", [], "no problem"),
    (GEMM, ["--op", "gemm"], "--op goes not with --problems"), (GEMM, ["--top", "0"], "--top"),
    (GEMM, ["--most", "x"], "--most"), (GEMM, ["--kernels", "some"], "sample"), (GEMM, ["--seed", "-1"], "--seed"),
    (GEMM, ["--kernels", "all", "--top", "2"], "leave one of them out"),
])
def test_bad_lists_of_problems(run, text, words, told):
    answer = run("build", "--problems", "-", "--arch", "cpu-generic", *words, stdin=text)
    assert answer.code == 2 and told in answer.err and not answer.out, answer


def test_a_pack_carries_tuning_records(run, quick_compiler, tmp_path):
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "cache"), "TILEWISE_CXX": quick_compiler}
    pool = ("--arch", "cpu-generic", "--rule-set", "tiny")
    tuned = run("tune", GEMM, *pool, "--top", "2", "--json", env=env)
    assert tuned.code == 0, tuned
    pack = tmp_path / "tuned.pack"
    assert run("build", "--problems", "-", *pool, "--pack", str(pack), stdin=GEMM, env=env).code == 0
    elsewhere = {"TILEWISE_CACHE_DIR": str(tmp_path / "other"), **NO_COMPILER}
    answer = run("run", GEMM, *pool, "--pack", str(pack), "--json", env=elsewhere)
    assert answer.code == 0 and answer.json["plan"]["source"] == "tuned", answer
    assert answer.json["kernel"] == tuned.json["results"][0]["kernel"]
    assert not (tmp_path / "other" / "tuning.jsonl").exists(), "what a pack says is not ours"
    pack.chmod(0o666)
    assert run("run", GEMM, *pool, "--pack", str(pack), env=elsewhere).code == 4


def test_failures_are_counted_and_exit_4(run, built, tmp_path):
    pack = tmp_path / "none.pack"
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "cache"), **NO_COMPILER}
    answer = run("build", *POOL, "--pack", str(pack), "--json", env=env)
    assert answer.code == 4 and answer.json["binaries"] >= answer.json["failed"] == built[1]["compiled"], answer
    assert answer.err.count("tilewise: ") == 1 and not pack.exists() and answer.json["pack"] is None, answer
    assert "pack written" not in run("build", *POOL, "--pack", str(pack), env=env).out


def test_a_pack_that_cannot_be_written(run, built, tmp_path):
    answer = run("build", *POOL, "--pack", str(tmp_path / "no" / "where.pack"), env=built[0])
    assert answer.code not in (0, 1) and "where.pack" in answer.err, answer


@pytest.fixture
def own_cache(run, built, tmp_path):
    """A cache that a test may damage, filled from the pack; cache(*words) runs `tilewise cache`."""
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "own"), "TILEWISE_PACKS": str(built[2]), **NO_COMPILER}
    assert run("build", *POOL, env=env).code == 0
    return lambda *words: run("cache", *words, env=env)


def test_ls_and_stats(own_cache, built, tmp_path):
    listed = own_cache("ls", "--json").json
    assert listed["root"] == str(tmp_path / "own") and len(listed["entries"]) == built[1]["binaries"]
    for entry in listed["entries"]:
        assert len(entry["digest"]) == 64 and entry["bytes"] > 0 and entry["kernel"].endswith("@cpu-generic")
        assert entry["arch"] == "cpu-generic" and entry["path"].startswith(listed["root"])
    stats = own_cache("stats", "--json").json
    assert stats["entries"] == len(listed["entries"]) and stats["failed"] == 0 and stats["max_bytes"] > 0
    assert stats["bytes"] == sum(entry["bytes"] for entry in listed["entries"])
    assert listed["entries"][0]["digest"][:16] in own_cache("ls").out
    assert f"{stats['entries']} kernels" in own_cache("stats").out


def test_verify_finds_a_changed_byte(own_cache):
    assert own_cache("verify", "--json").json == {"ok": True, "bad": []}
    entry = own_cache("ls", "--json").json["entries"][0]
    with open(entry["path"], "r+b") as file:
        file.seek(entry["bytes"] // 4)
        byte = file.read(1)[0]
        file.seek(entry["bytes"] // 4)
        file.write(bytes([byte ^ 1]))
    answer = own_cache("verify", "--json")
    assert answer.code == 1 and [bad["digest"] for bad in answer.json["bad"]] == [entry["digest"]], answer
    people = own_cache("verify")
    assert people.code == 1 and entry["digest"] in people.out, people


def test_prune_and_clear(own_cache):
    stats = own_cache("stats", "--json").json
    assert own_cache("prune", "--json").json == {"removed": 0}, "what is below the limit stays"
    assert own_cache("prune", "--max", str(stats["bytes"] - 1), "--json").json["removed"] >= 1
    left = own_cache("stats", "--json").json
    assert 0 < left["entries"] < stats["entries"] and left["bytes"] < stats["bytes"]
    assert f"{left['entries']} entries removed" in own_cache("clear").out
    assert own_cache("stats", "--json").json["entries"] == 0 and own_cache("ls", "--json").json["entries"] == []
    assert own_cache("clear", "--json").json == {"removed": 0}


@pytest.mark.parametrize("words, told", [
    ([], "ls|stats"), (["lst"], "did you mean 'ls'?"), (["ls", "stats"], "2 operands"),
    (["prune", "--max", "lots"], "--max"), (["prune", "--max", "-1"], "--max"), (["prune", "--max", ""], "--max"),
])
def test_bad_cache_words(cached, words, told):
    answer = cached("cache", *words)
    assert answer.code == 2 and told in answer.err and not answer.out, answer


def test_a_cache_that_others_may_write_to_is_refused(run, tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    env = {"TILEWISE_CACHE_DIR": str(folder)}
    for words in (["cache", "stats"], ["run", GEMM, *POOL[:4]]):
        answer = run(*words, env=env)
        assert answer.code == 2 and str(folder) in answer.err and "TILEWISE_CACHE_DIR" in answer.err, answer


def test_building_nothing_is_an_error(run, tmp_path):
    answer = run("build", "--arch", "gfx942", "--op", "conv_bwd_data", "--dtype", "int8", "--rule-set", "tiny",
                 env={"TILEWISE_CACHE_DIR": str(tmp_path)})
    assert answer.code == 3 and "nothing to build" in answer.err and "no" in answer.err, answer
