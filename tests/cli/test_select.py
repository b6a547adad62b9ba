# SPDX-License-Identifier: MIT
"""tilewise select: a plan, the candidates, and for every kernel that may not run the rule and the numbers."""
import pytest

GEMM = "gemm:m=1024,n=1024,k=1024,dtype=bf16,layout=rcr"
CONV = "conv_fwd:n=64,g=2,c=96,k=96,in=56x56,filter=3x3,stride=1x1,pad=1x1,dilation=1x1,dtype=bf16,layout=nhwgc"
NO_KERNEL = ("gemm:m=64,n=64,k=64,dtype=fp8,layout=rcr", "--arch", "sm_80")


@pytest.mark.parametrize("problem", [GEMM, CONV, CONV.replace("fwd", "bwd_data"), CONV.replace("fwd", "bwd_weight")])
@pytest.mark.parametrize("arch", ["gfx942", "sm_90a", "cpu-avx512"])
def test_shape_of_the_json(ask, arch, problem):
    answer = ask("select", problem, "--arch", arch, "--explain")
    assert {"kernel", "source", "why"} <= set(answer["plan"])
    names = [item["name"] for item in answer["candidates"]]
    assert answer["plan"]["kernel"] == names[0] and answer["plan"]["why"]
    assert all("predicted_us" in item for item in answer["candidates"])
    assert all(name.endswith(f"@{arch}") for name in names)
    for item in answer["rejected"]:
        assert set(item) >= {"name", "rule", "have", "need"} and all(item[key] for key in ("rule", "have", "need"))


SMALL = "n=1,g=2,c=32,k=16,in=17,filter=2,dtype=fp16"


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "gfx942", "cpu-avx512"])
@pytest.mark.parametrize("op", ["conv_fwd", "conv_bwd_data", "conv_bwd_weight"])
@pytest.mark.parametrize("far", ["stride=4294967296", "stride=4294967297", "dilation=4294967297,pad=4294967297:0",
                                 "dilation=3,stride=4294967296,pad=4294967296:8589934592"])
def test_windows_that_32_bits_do_not_count_have_a_kernel_that_does(ask, arch, op, far):
    answer = ask("select", f"{op}:{SMALL},{far}", "--arch", arch, "--explain")
    if arch.startswith("sm"):
        assert all("_splitimage" in item["name"] for item in answer["candidates"])
        assert "fit_index_range" in {item["rule"] for item in answer["rejected"]}


def value_of(work):
    """A work tree of sums, products and so on, evaluated from its counts and prices alone."""
    if "of" not in work:
        return work["count"] if "count" in work else work["value"]
    of = [value_of(part) for part in work["of"]]
    return {"sum": lambda: sum(of), "product": lambda: of[0] * of[1], "quotient": lambda: of[0] / of[1],
            "power": lambda: of[0] ** of[1], "longest": lambda: max(of), "shortest": lambda: min(of),
            "soft_max": lambda: sum(part ** of[0] for part in of[1:]) ** (1 / of[0]),
            "overlap": lambda: max(of[1:]) + of[0] * (sum(of[1:]) - max(of[1:]))}[work["form"]]()


@pytest.mark.parametrize("problem", [GEMM, CONV])
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942", "cpu-avx512"])
def test_the_plan_has_the_work_that_its_time_follows_from(run, ask, arch, problem):
    answer = ask("select", problem, "--arch", arch, "--strategy", "rules")  # a learned model corrects the time
    assert value_of(answer["plan"]["work"]) == pytest.approx(answer["candidates"][0]["predicted_us"], rel=1e-6)
    told = run("select", problem, "--arch", arch, "--explain").out
    assert "\nwork: what the predicted time" in told and "peaks.memory_gbps" in told
    assert "\nwork: " not in run("select", problem, "--arch", arch).out


def test_every_kernel_is_a_candidate_or_rejected(ask):
    answer = ask("select", GEMM, "--arch", "gfx942", "--rule-set", "tests", "--explain")
    kernels = ask("kernels", "--arch", "gfx942", "--op", "gemm", "--dtype", "bf16", "--rule-set", "tests")["kernels"]
    seen = [item["name"] for item in answer["candidates"] + answer["rejected"]]
    assert len(seen) == len(set(seen))
    assert {kernel["name"] for kernel in kernels} <= set(seen)


def test_explain_names_rule_have_and_need_for_each_rejected_kernel(run, ask):
    words = ("select", CONV, "--arch", "gfx942", "--explain")
    lines = {line.split()[-1]: line for line in run(*words).out.splitlines() if "@gfx942" in line}
    rejected = ask(*words)["rejected"]
    assert rejected
    for item in rejected:
        line = lines[item["name"]]
        assert item["rule"] in line and item["have"] in line and item["need"] in line
    listed = run("check", "--rules").out
    assert all(f"\n{rule} " in listed for rule in {item["rule"] for item in rejected})


def test_without_explain_the_reasons_are_counted(run, ask):
    rejected = ask("select", CONV, "--arch", "gfx942", "--explain")["rejected"]
    last = run("select", CONV, "--arch", "gfx942").out.splitlines()[-1]
    for rule in {item["rule"] for item in rejected}:
        assert f"{sum(item['rule'] == rule for item in rejected)} by {rule}" in last


def test_problem_is_shown_as_it_was_understood(run):
    out = run("select", " gemm: n=64 , m=32,k=16,dtype=bf16,layout=rcr,beta=0", "--arch", "gfx942").out
    assert out.splitlines()[0] == "gemm:m=32,n=64,k=16,dtype=bf16,layout=rcr"


@pytest.mark.parametrize("top", [0, 1, 3, 10**6])
def test_top(run, ask, top):
    total = len(ask("select", GEMM, "--arch", "gfx942")["candidates"])
    out = run("select", GEMM, "--arch", "gfx942", "--top", str(top)).out
    rows = [line for line in out.splitlines() if line.split() and line.split()[0].isdigit() and line.endswith("@gfx942")]
    assert len(rows) == min(top, total)


@pytest.mark.parametrize("top", ["-1", "x", "", "1.5", "99999999999999999999"])
def test_bad_top(run, top):
    answer = run("select", GEMM, "--top", top)
    assert answer.code == 2 and "--top" in answer.err, answer


def test_default_arch_is_the_host_cpu(ask, machine):
    assert ask("select", GEMM)["plan"]["kernel"].endswith("@" + machine["host CPU"])


@pytest.mark.parametrize("rule_set", ["default", "profiler", "tests", "full", "full-tests", "tiny", "builtin"])
def test_rule_sets(ask, rule_set):
    assert ask("select", GEMM, "--arch", "gfx950", "--rule-set", rule_set)["plan"]


@pytest.mark.parametrize("problem, rule, numbers", [
    ("gemm:m=1,n=-1,k=1,dtype=bf16", "size_positive", ["n=-1"]),
    ("gemm:m=-5,n=1,k=1,dtype=bf16", "size_positive", ["m=-5"]),
    ("gemm:m=9223372036854775807,n=9,k=9,dtype=bf16", "size_positive", ["9223372036854775807"]),
    ("gemm:m=99999999,n=99999999,k=99999999,dtype=bf16", "size_overflow", ["99999999*99999999"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,lda=4", "leading_stride", ["lda=4", "8"]),
    ("gemm:m=8,n=8,k=8,batch=2,dtype=bf16,batch_stride_c=63", "batch_stride", ["63", "64"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,b=fp16", "dtype_pair", ["bf16", "fp16"]),
    ("gemm:m=8,n=8,k=8,dtype=int32", "dtype_input", ["int32"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,out=int8", "dtype_output", ["int8"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,math=tf32", "math_dtype", ["tf32"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,align=3", "align", ["align=3"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,epilogue=bias+bias", "epilogue_bias", ["2"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,d=add+add+add+add+add", "d_tensors", ["5", "4"]),
    ("gemm:m=8,n=8,k=8,dtype=bf16,layout=nhwgc", "layout_op", ["nhwgc"]),
    ("conv_fwd:n=1,g=3,c=4,k=6,in=8x8,filter=3x3,dtype=bf16", "groups_divide", ["c=4", "g=3"]),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=9x9,dtype=bf16", "filter_fits", ["9", "8"]),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,stride=0,dtype=bf16", "size_positive", ["stride=0"]),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,pad=-1,dtype=bf16", "pad_range", ["-1"]),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,dtype=bf16,layout=nwgc", "layout_op", ["nwgc", "2"]),
    ("conv_bwd_data:n=1,c=4,k=4,in=8x8,filter=3x3,dtype=int8", "int8_forward_only", ["conv_bwd_data"]),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,dtype=bf16,scale=row", "scale_row", ["scale=tensor"]),
])
def test_impossible_problem_is_refused_with_rule_and_numbers(run, problem, rule, numbers):
    answer = run("select", problem, "--arch", "gfx942")
    assert answer.code == 3 and not answer.out, answer
    assert rule in answer.err and all(number in answer.err for number in numbers), answer


@pytest.mark.parametrize("problem, told", [
    ("", "gemm"),
    ("gemm", "'m' is missing"),
    ("gemm:", "'m' is missing"),
    ("gem:m=1", "did you mean 'gemm'?"),
    ("gemm:m=1,n=1,k=1", "'dtype' is missing"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,", "column 29"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,beta", "beta"),
    ("gemm:m=1,m=1,n=1,k=1,dtype=bf16", "given twice"),
    ("gemm:m=1e3,n=1,k=1,dtype=bf16", "column 6"),
    ("gemm:m=99999999999999999999,n=1,k=1,dtype=bf16", "99999999999999999999"),
    ("gemm:m=ü,n=1,k=1,dtype=bf16", "'m'"),
    ("gemm:m=1,n=1,k=1,dtype=bf17", "did you mean 'bf16'?"),
    ("gemm:m=1,n=1,k=1,dtyp=bf16", "did you mean 'dtype'?"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,lda=-1", "lda"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,beta=0.5", "beta"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,epilogue=bais", "did you mean 'bias'?"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,epilogue=", "epilogue"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,workspace=1X", "workspace"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,layout=any", "layout"),
    ("gemm:m=1,n=1,k=1,dtype=bf16,filter=3x3", "filter"),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3x3,dtype=bf16", "3 dimensions"),
    ("conv_fwd:n=1,c=4,k=4,in=8x8x8x8,filter=3,dtype=bf16", "8x8x8x8"),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,pad=1:2:3,dtype=bf16", "1:2:3"),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,pad=1:0x,dtype=bf16", "1:0x"),
    ("conv_fwd:n=1,c=4,k=4,in=8x8,filter=3x3,batch=2,dtype=bf16", "batch"),
])
def test_malformed_problem_is_a_usage_error_at_its_field(run, problem, told):
    answer = run("select", problem, "--arch", "gfx942")
    assert answer.code == 2 and told in answer.err and not answer.out, answer


def test_no_kernel_is_exit_3_and_says_why(run):
    answer = run("select", *NO_KERNEL)
    assert answer.code == 3 and "no kernel" in answer.err and "sm_80" in answer.err, answer
    answer = run("select", *NO_KERNEL, "--json")
    assert answer.code == 3 and answer.json.get("plan") is None and "no kernel" in answer.err, answer


@pytest.mark.parametrize("words, told", [
    ([], "PROBLEM"), ([GEMM, GEMM], "2 operands"), ([GEMM, "--arch", "gfx"], "unknown arch"),
    ([GEMM, "--rule-set", "ful"], "did you mean 'full'?"),
])
def test_bad_words(run, words, told):
    answer = run("select", *words)
    assert answer.code == 2 and told in answer.err, answer


@pytest.mark.parametrize("layout, size", [("nwgc", "16"), ("nhwgc", "16x16"), ("ndhwgc", "8x8x8"), ("ngchw", "16x16")])
@pytest.mark.parametrize("op", ["conv_fwd", "conv_bwd_data", "conv_bwd_weight"])
@pytest.mark.parametrize("arch", ["cpu-generic", "gfx90a", "sm_80"])
def test_odd_convolutions_have_a_kernel_on_every_kind_of_target(ask, arch, op, layout, size):
    """The default pool leaves no ordinary problem without a kernel: odd channels, groups, any dimension and layout."""
    problem = f"{op}:n=2,g=3,c=15,k=21,in={size},filter=3,pad=1,dtype=fp16,layout={layout}"
    assert ask("select", problem, "--arch", arch)["plan"]


@pytest.mark.parametrize("arch", ["gfx942", "sm_90a"])
def test_depthwise_channels_are_moved_in_vectors(ask, arch):
    """Groups of one channel lie side by side, so wide accesses along channels are possible and must not be refused."""
    problem = "conv_fwd:n=4,g=64,c=64,k=64,in=32x32,filter=3x3,pad=1,dtype=bf16,layout=nhwgc"
    names = [item["name"] for item in ask("select", problem, "--arch", arch)["candidates"]]
    assert [name for name in names if "depthwise" in name and "_va" in name]


def test_misaligned_pointers_rule_out_vectors(ask):
    names = [item["name"] for item in ask("select", f"{GEMM},align=2", "--arch", "gfx942")["candidates"]]
    assert names and not [name for name in names if "_va" in name or "_vb" in name or "_vc" in name]


def test_deterministic_rules_out_atomics(ask):
    answer = ask("select", f"{GEMM},deterministic=1", "--arch", "gfx942", "--rule-set", "full", "--explain")
    assert not [item for item in answer["candidates"] if "no-deterministic" in item["name"]]
    assert [item for item in answer["rejected"] if item["rule"] == "fit_deterministic"]


def test_workspace_limit_is_kept(ask):
    answer = ask("select", f"{GEMM},workspace=0", "--arch", "gfx942", "--rule-set", "full", "--explain")
    refused = [item for item in answer["rejected"] if item["rule"] == "fit_workspace"]
    assert refused and all("at most 0" in item["need"] for item in refused)


def test_largest_problem_does_not_overflow(run):
    """Sizes up to the limit are counted in 64 bits without wrapping round."""
    size = 1 << 46
    answer = run("select", f"conv_bwd_weight:n=1,c=1,k=1,in={2 * size},filter={size},dtype=bf16,workspace=1",
                 "--arch", "cpu-generic", "--rule-set", "full", "--explain", "--json")
    assert answer.code in (0, 3)
    for item in answer.json["rejected"]:
        assert not item["have"].startswith("-"), item
    wasteful = [item["name"] for item in answer.json["candidates"] if "_explicit" in item["name"]]
    assert not wasteful, "an im2col matrix beyond any memory fits no workspace"
