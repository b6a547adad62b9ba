# SPDX-License-Identifier: MIT
"""tilewise run: a kernel is chosen or named, built, run and checked; every way to fail has its exit code."""
import json
import re

import pytest

GEMM = "gemm:m=100,n=70,k=50,dtype=fp32,layout=rcr"
CONV = "conv_fwd:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=fp32"
GEMM_KERNEL = "gemm_fp32_any_basic_v1_default_intrawave_48x128x128_1x1x1_4x8x1@cpu-generic"
ARCH = ("--arch", "cpu-generic")  # every machine has it
NOT_BUILT_IN = "gemm:m=100,n=70,k=50,dtype=bf16,layout=rcr,out=fp32"
NO_COMPILER = {"TILEWISE_CXX": "/nonexistent/c++", "PATH": ""}


@pytest.fixture(scope="module")
def chosen(ask_cached):
    """The name of the kernel that is chosen for the problem."""
    return ask_cached("run", GEMM, *ARCH, "--strategy", "rules")["kernel"]


@pytest.fixture(scope="module")
def listed(ask):
    return ask("kernels", "--op", "gemm", "--dtype", "fp32", "--rule-set", "full", *ARCH)["kernels"]


def test_shape_of_the_json(ask_cached):
    answer = ask_cached("run", GEMM, *ARCH)
    assert set(answer) == {"problem", "kernel", "plan", "time_us", "tflops"}
    assert answer["problem"] == GEMM and answer["kernel"].endswith("@cpu-generic")
    plan = answer["plan"]
    assert plan["kernel"] == answer["kernel"] and plan["source"] and plan["why"] and plan["threads"] >= 1
    assert answer["time_us"] > 0
    assert answer["tflops"] == pytest.approx(2 * 100 * 70 * 50 / answer["time_us"] / 1e6, rel=1e-3)


@pytest.mark.parametrize("problem", [
    GEMM,
    "gemm:m=33,n=17,k=65,batch=3,dtype=fp32,layout=crr,epilogue=bias+gelu,d=add,beta=1",
    "gemm:m=1,n=64,k=64,dtype=bf16,layout=rcr",
    "gemm:m=31,n=7,k=129,dtype=int8,layout=rcr",
    CONV,
    "conv_fwd:n=2,g=3,c=12,k=9,in=7x5,filter=3x2,stride=2,pad=1,dtype=bf16,epilogue=bias+gelu,d=add,beta=1",
    "conv_fwd:n=1,g=6,c=6,k=6,in=11,filter=3,dilation=2,dtype=int8",
    "conv_bwd_data:n=2,g=2,c=8,k=6,in=6x7,filter=3x3,stride=2x3,pad=1:2x0:1,dtype=fp32,layout=ngchw",
    "conv_bwd_weight:n=3,g=1,c=5,k=7,in=3x4x5,filter=2x2x2,pad=1,dtype=fp16,out=fp32",
])
def test_validate(ask_cached, problem):
    validation = ask_cached("run", problem, *ARCH, "--validate")["validation"]
    assert validation["ok"] is True and validation["checked"] > 0
    assert 0 <= validation["max_error"] <= max(validation["tolerance"], 1e-30)


ONE_PIXEL = [  # of x, of y, or of both
    "conv_fwd:n=3,g=2,c=32,k=32,in=5x5,filter=5x5",
    "conv_fwd:n=2,g=1,c=8,k=8,in=1x1,filter=3x3,pad=2x2,epilogue=bias+relu",
    "conv_bwd_data:n=2,g=4,c=64,k=64,in=7x7,filter=7x7",
    "conv_bwd_data:n=3,g=16,c=16,k=16,in=3x3,filter=3x3",
    "conv_bwd_data:n=2,g=1,c=12,k=20,in=1x1,filter=3x3,pad=1x1,d=add",
    "conv_bwd_weight:n=32,g=1,c=64,k=64,in=1x1,filter=1x1",
    "conv_bwd_weight:n=5,g=8,c=8,k=8,in=3x3,filter=3x3",
    "conv_bwd_weight:n=5,g=2,c=6,k=4,in=1x1,filter=3x3,pad=1x1",
]


@pytest.mark.parametrize("problem", ONE_PIXEL)
@pytest.mark.parametrize("arch", ["cpu-generic", "cpu-avx2"])
def test_images_of_one_pixel_with_channels_first(run, ask, machine, problem, arch):
    """Every built-in kernel: pixels and channels of such an image are both neighbours in memory."""
    if arch == "cpu-avx2" and "avx2" not in machine["CPU features"].split():
        pytest.skip("this machine has no AVX2")
    problem += ",dtype=fp32,layout=ngchw"
    options = ("--arch", arch, "--rule-set", "builtin")
    kernels = ask("select", problem, *options, "--top", "1000")["candidates"]
    assert kernels
    for kernel in kernels:
        answer = run("run", problem, *options, "--kernel", kernel["name"], "--validate", "--json", env=NO_COMPILER)
        assert answer.code == 0 and answer.json["validation"]["ok"], (kernel["name"], answer)


def test_what_people_read(cached, chosen):
    answer = cached("run", GEMM, *ARCH, "--strategy", "rules", "--validate")
    assert answer.code == 0 and not answer.err, answer
    assert answer.out.splitlines()[0] == GEMM and chosen in answer.out
    assert re.search(r"time: +[0-9.]+ us", answer.out) and "valid:" in answer.out


def test_the_second_run_finds_the_kernel_in_the_cache(ask_cached, cached, chosen):
    words = ("run", GEMM, *ARCH, "--kernel", chosen, "--json")
    assert ask_cached(*words[:-1])["plan"]["origin"] == "cache"
    assert cached(*words, env=NO_COMPILER).code == 0, "a hit needs no compiler"


@pytest.mark.parametrize("strategy, source", [
    ("auto", {"rules", "tuned"}), ("rules", {"rules"}), ("first-fit", {"first-fit"}), ("measure", {"measured", "tuned"}),
])
def test_strategies(ask_cached, strategy, source):
    answer = ask_cached("run", GEMM, *ARCH, "--strategy", strategy, "--top", "2", "--rule-set", "tiny", "--validate")
    assert answer["plan"]["source"] in source and answer["validation"]["ok"]


def test_kernel_by_name_and_by_config(ask_cached, chosen, listed, tmp_path):
    config = next(kernel["config"] for kernel in listed if kernel["name"] == chosen)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config, indent=1))
    for word, stdin in ((chosen, ""), (str(path), ""), (json.dumps(config), ""), ("-", json.dumps(config))):
        answer = ask_cached("run", GEMM, *ARCH, "--kernel", word, stdin=stdin)
        assert answer["kernel"] == chosen and answer["plan"]["source"] == "named"


def test_a_kernel_that_no_rule_set_lists_runs(ask_cached, run, chosen, listed):
    """Whatever is valid may be asked for: here a tile that no recipe has."""
    names = {kernel["name"] for kernel in listed}
    config = next(kernel["config"] for kernel in listed if kernel["name"] == chosen)
    tile = [int(size) for size in config["tile"].split("x")]
    odd = {**config, "tile": f"{tile[0]}x{tile[1]}x{tile[2] * 3 // 4}"}
    assert run("check", json.dumps(odd)).code == 0
    answer = ask_cached("run", GEMM, *ARCH, "--kernel", json.dumps(odd), "--validate")
    assert answer["kernel"] not in names and answer["validation"]["ok"]


def test_threads(ask_cached, cached):
    big = "gemm:m=256,n=256,k=256,dtype=fp32,layout=rcr"
    assert ask_cached("run", big, *ARCH, "--threads", "1")["plan"]["threads"] == 1
    answer = cached("run", big, *ARCH, "--threads", "100000")
    assert answer.code == 2 and "100000" in answer.err, answer


@pytest.mark.parametrize("words, code, told", [
    ([], 2, "PROBLEM"),
    (["gemm:m=1"], 2, "'n' is missing"),
    (["gemm:m=-1,n=1,k=1,dtype=fp32"], 3, "size_positive"),
    ([CONV, *ARCH, "--kernel", GEMM_KERNEL], 3, "fit_op"),
    (["conv_fwd:n=1,g=3,c=8,k=9,in=8x8,filter=3x3,dtype=fp32"], 3, "c divisible by g"),
    (["conv_fwd:n=1,c=8,k=8,in=2x8,filter=5x3,pad=1,dtype=fp32"], 3, "the padded input"),
    (["conv_bwd_weight:n=1,c=8,k=8,in=8x8,filter=3x3,dtype=fp32,epilogue=bias"], 3, "bias_output"),
    ([GEMM, "--strategy", "rule"], 2, "did you mean 'rules'?"),
    ([GEMM, "--rule-set", "tny"], 2, "did you mean 'tiny'?"),
    ([GEMM, "--top", "0"], 2, "--top"),
    ([GEMM, "--top", "x"], 2, "--top"),
    ([GEMM, "--threads", "-1"], 2, "--threads"),
    ([GEMM, "--threads", "1.5"], 2, "--threads"),
    ([GEMM, "--threads", "4294967297"], 2, "4294967297"),
    ([GEMM, "--device", "cuda:99"], 5, "cuda:99"),
    ([GEMM, "--device", "tpu"], 5, "tpu"),
    ([GEMM, "--arch", "gfx942"], 3, "gfx942"),
    ([GEMM, "--arch", "cpu"], 2, "unknown arch"),
    ([GEMM, "--pack", "nowhere.pack"], 4, "nowhere.pack"),
    ([GEMM, "--kernel", "nowhere.json"], 2, "@arch"),
    ([GEMM, "--kernel", "{}"], 2, "missing"),
    ([GEMM, "--kernel", "{}", "--strategy", "rules"], 2, "--strategy"),
    ([GEMM, "--kernel", "gemm_fp32_rcr_nonsense@cpu-generic"], 2, "nonsense"),
])
def test_bad_words(cached, words, code, told):
    answer = cached("run", *words)
    assert answer.code == code and told in answer.err and not answer.out, answer
    answer = cached("run", *words, "--json")
    assert answer.code == code and answer.json["error"]["code"] == code and told in answer.json["error"]["message"]


def test_a_named_kernel_runs_or_fails_with_its_rule(cached, chosen):
    """Nothing else is run in its place."""
    other_dtype = cached("run", GEMM.replace("fp32", "bf16"), *ARCH, "--kernel", chosen)
    assert other_dtype.code == 3 and "fit_" in other_dtype.err and chosen in other_dtype.err, other_dtype
    other_arch = cached("run", GEMM, *ARCH, "--kernel", chosen.replace("@cpu-generic", "@gfx942"))
    assert other_arch.code == 3 and "gfx942" in other_arch.err, other_arch
    nameless = cached("run", GEMM, *ARCH, "--kernel", chosen.split("@")[0])
    assert nameless.code == 2 and "@arch" in nameless.err, nameless


def test_no_compiler_and_nothing_cached_is_exit_4(run, tmp_path):
    answer = run("run", NOT_BUILT_IN, *ARCH, env={**NO_COMPILER, "TILEWISE_CACHE_DIR": str(tmp_path)})
    assert answer.code == 4 and "TILEWISE_CXX" in answer.err and "apt install" in answer.err, answer


@pytest.mark.parametrize("name, value", [("TILEWISE_CACHE_MAX", "lots"), ("TILEWISE_RECORDS_MAX", "2G"), ("TILEWISE_COMPILE_TIMEOUT_S", "0")])
def test_bad_environment_is_named(cached, name, value):
    answer = cached("run", GEMM, *ARCH, env={name: value})
    assert answer.code == 2 and name in answer.err and value in answer.err, answer


def strictly(cached, *words, **options):
    """The same run without and with --strict."""
    return cached("run", *words, "--json", **options), cached("run", *words, "--json", "--strict", **options)


def test_strict_changes_nothing_when_all_is_well(cached, chosen):
    plain, strict = strictly(cached, GEMM, *ARCH, "--kernel", chosen)
    assert plain.code == strict.code == 0 and plain.json["plan"]["notes"] == strict.json["plan"]["notes"] == []


def test_strict_forbids_a_kernel_that_cannot_be_kept(cached, tmp_path):
    """Where the cache cannot be written, a kernel is built for one process, which the next one pays for again."""
    (tmp_path / "file").write_text("in the way")
    env = {"TILEWISE_CACHE_DIR": str(tmp_path / "file" / "cache")}
    plain, strict = strictly(cached, NOT_BUILT_IN, *ARCH, "--strategy", "rules", env=env)
    assert plain.code == 0 and plain.json["plan"]["origin"] == "private", plain
    assert [note["kind"] for note in plain.json["plan"]["notes"]] == ["cache"]
    assert strict.code == 4 and plain.json["plan"]["notes"][0]["message"] in strict.json["error"]["message"], strict
    people = cached("run", NOT_BUILT_IN, *ARCH, "--strategy", "rules", env=env)
    assert people.code == 0 and "tilewise: note: " in people.err, people


def test_strict_forbids_passing_over_a_tuned_kernel(cached, ask_cached):
    """The record is of other code than there is now, so it does not count; that may be slower, and is said."""
    problem = "gemm:m=97,n=71,k=53,dtype=fp32,layout=rcr"
    pool = (*ARCH, "--rule-set", "tiny")
    database = ask_cached("tune", problem, "--top", "1", *pool)["database"]
    assert strictly(cached, problem, *pool)[1].json["plan"]["source"] == "tuned"
    with open(database, encoding="utf-8") as file:
        record = next(json.loads(line) for line in file if problem in line)
    with open(database, "a", encoding="utf-8") as file:
        file.write(json.dumps({**record, "code_digest": "0" * 64}) + "\n")
    plain, strict = strictly(cached, problem, *pool)
    assert plain.json["plan"]["source"] == "rules" and plain.json["plan"]["notes"][0]["kind"] == "tuning", plain
    assert strict.code == 1 and "tilewise tune" in strict.err, strict


def test_threads_and_packs_may_stand_before_the_command(cached, ask_cached, tmp_path):
    big = "gemm:m=256,n=256,k=256,dtype=fp32,layout=rcr"
    assert ask_cached("--threads", "1", "run", big, *ARCH)["plan"]["threads"] == 1
    answer = cached("--pack", str(tmp_path / "nowhere.pack"), "run", big, *ARCH)
    assert answer.code == 4 and "nowhere.pack" in answer.err, answer


def test_the_model_is_asked_for_as_many_threads_as_are_used(ask, run):
    big = "gemm:m=2048,n=2048,k=2048,dtype=fp32,layout=rcr"
    one, four = (ask("select", big, *ARCH, "--threads", threads)["plan"] for threads in ("1", "4"))
    assert "on 1 thread," in one["why"] and "on 4 threads," in four["why"]
    answer = run("select", big, "--threads", "many")
    assert answer.code == 2 and "--threads" in answer.err, answer
