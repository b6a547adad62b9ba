# SPDX-License-Identifier: MIT
"""tilewise arch and --arch-file: the targets there are, and new ones without a rebuild."""
import json

import pytest


def test_list_has_every_file(run, ask, root):
    names = sorted(path.stem for path in (root / "arch").glob("*.json"))
    answer = ask("arch")
    assert answer["count"] == len(names) and [arch["name"] for arch in answer["archs"]] == names
    lines = run("arch").out.splitlines()
    assert [line.split()[0] for line in lines] == ["arch", *names]


def test_one_is_shown_as_its_file_and_that_of_its_chip(run, ask, root):
    spec = json.loads((root / "arch/sm_90a.json").read_text())
    assert spec["chip"] == "h200"
    spec["chip"] = json.loads((root / "chips/h200.json").read_text())
    assert ask("arch", "sm_90a") == spec
    assert json.loads(run("arch", "sm_90a").out) == spec  # for reading, but JSON as well


def test_unknown(run):
    answer = run("arch", "gfx9420")
    assert answer.code == 2 and "unknown arch 'gfx9420'; did you mean 'gfx942'?" in answer.err, answer
    assert "one of: cpu-amx" in run("arch", "qqqqqqqqqqqq").err


def test_arch_file_adds_an_arch_that_works_everywhere(ask, run, new_arch):
    added = ("--arch-file", new_arch())
    assert "gfx-new" in [arch["name"] for arch in ask("arch", *added)["archs"]]
    kernels = ask("kernels", "--arch", "gfx-new", "--op", "gemm", "--rule-set", "tests", *added)["kernels"]
    model = ask("kernels", "--arch", "gfx942", "--op", "gemm", "--rule-set", "tests")["kernels"]
    assert [kernel["name"] for kernel in kernels] == [kernel["name"].replace("@gfx942", "@gfx-new") for kernel in model]
    assert run("check", kernels[0]["name"], *added).code == 0
    assert run("check", kernels[0]["name"]).code == 2  # unknown without the file
    problem = "gemm:m=256,n=256,k=256,dtype=bf16,layout=rcr"
    assert ask("select", problem, "--arch", "gfx-new", *added)["plan"]["kernel"].endswith("@gfx-new")
    assert run("doctor", *added).code == 0


def test_arch_file_from_the_environment(run, new_arch):
    assert run("arch", "gfx-new", env={"TILEWISE_ARCH_FILE": str(new_arch())}).code == 0


def test_arch_file_may_be_repeated(run, root, tmp_path):
    words = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.json"
        path.write_text((root / "arch/gfx942.json").read_text().replace('"gfx942"', f'"{name}"'))
        words += ["--arch-file", path]
    assert run("arch", "one", *words).code == 0 and run("arch", "two", *words).code == 0


def test_changed_limit_changes_the_verdict(run, a_kernel, new_arch):
    """The numbers of the file are the ones the rules use."""
    path = new_arch(lambda spec: spec.update(shared_bytes=1024))
    answer = run("check", a_kernel["name"].replace("@gfx942", "@gfx-new"), "--arch-file", path, "--json")
    assert answer.code == 1
    violation = next(item for item in answer.json["violations"] if item["rule"] == "shared_memory")
    assert "1024" in violation["need"]


def put(*keys, value):
    """An edit that sets spec[keys[0]][keys[1]]… to a value."""
    def edit(spec):
        for key in keys[:-1]:
            spec = spec[key]
        spec[keys[-1]] = value
    return edit


@pytest.mark.parametrize("edit, key", [
    (put("wave_size", value=0), "wave_size"),
    (put("wave_size", value=1 << 20), "wave_size"),
    (put("chip", "units", value=1 << 60), "units"),
    (put("chip", "units", value="304"), "units"),
    (put("chip", "units", value=1.5), "units"),
    (put("name", value="Not A Name"), "name"),
    (put("backend", value="vulkan"), "backend"),
    (put("backend", value="pu"), "backend"),  # a part of a word is not the word
    (put("rules", value="nothing"), "rules"),
    (put("waves", value=[]), "waves"),
    (put("waves", value=["2x2"]), "waves"),
    (put("warp_tiles", "bf17", value=["16x16x16"]), "bf17"),
    (put("warp_tiles", "bf16", value=["16x16x0"]), "bf16"),
    (put("pipelines", "compv9", value={}), "compv9"),
    (put("pipelines", "mem", "schedulers", value=["sometimes"]), "schedulers"),
    (put("pipelines", "mem", "buffers", value="triple"), "buffers"),
    (put("operators", "gemm", "align", value="0x0x0"), "align"),
    (put("options", "splitk", value="all"), "split_k"),
    (put("options", "split_k", value=["gem"]), "split_k"),
    (put("epilogues", value=["none"]), "epilogues"),
    (put("known_bad", value=["no_such_rule"]), "no_such_rule"),
    (put("chip", "peaks", "memory_gbps", value="fast"), "memory_gbps"),
    (put("shared_byte", value=1), "shared_bytes"),
    (lambda spec: spec["chip"].pop("units"), "units"),
    (lambda spec: spec["operators"].pop("gemm"), "gemm"),
])
def test_broken_arch_file_is_refused_with_its_place(run, new_arch, edit, key):
    path = new_arch(edit)
    answer = run("kernels", "--arch", "gfx-new", "--rule-set", "tiny", "--arch-file", path)
    assert answer.code == 2 and not answer.out, answer
    assert f"{path}:" in answer.err and key in answer.err, answer
    line = int(answer.err.split(f"{path}:")[1].split(":")[0])
    assert 1 <= line <= len(path.read_text().splitlines())


def test_line_of_the_place_is_the_line_of_the_key(run, new_arch):
    path = new_arch(put("load_bytes", value=-1))
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if '"load_bytes"' in text)
    assert f"{path}:{line}: load_bytes" in run("arch", "--arch-file", path).err


@pytest.mark.parametrize("text", ["", "[1]", '{"name":', "null", "\x00"])
def test_arch_file_that_is_no_json_object(run, tmp_path, text):
    path = tmp_path / "arch.json"
    path.write_text(text)
    answer = run("arch", "--arch-file", path)
    assert answer.code == 2 and str(path) in answer.err, answer


def test_missing_arch_file(run):
    answer = run("arch", "--arch-file", "nowhere.json")
    assert answer.code == 2 and "cannot read 'nowhere.json'" in answer.err, answer


def test_one_pair_of_types_is_listed_once(run, new_arch):
    """fp8 and fp8_fp8 are the same pair; twice in the file must not mean every kernel twice."""
    path = new_arch(lambda spec: spec["warp_tiles"].update(fp8_fp8=["32x32x16"]))
    answer = run("kernels", "--arch", "gfx-new", "--op", "gemm", "--dtype", "fp8", "--json", "--arch-file", path)
    if answer.code == 0:
        assert len({kernel["id"] for kernel in answer.json["kernels"]}) == answer.json["count"]
    else:
        assert answer.code == 2 and "fp8_fp8" in answer.err


@pytest.mark.parametrize("edit", [
    put("wave_size", value=1024), put("wave_size", value=1), put("chip", "units", value=1 << 20), put("load_bytes", value=1024),
    put("load_bytes", value=1), put("shared_bytes", value=1), put("shared_bytes", value=1 << 40),
    put("max_threads", value=1), put("waves", value=["65536x65536x65536"]),
    put("warp_tiles", "bf16", value=["65536x65536x65536"]), put("warp_tiles", "bf16", value=["1x1x1"]),
    put("operators", "gemm", "min", value="65536x65536x65536"), put("accumulators_per_thread", value=1 << 20),
])
def test_extreme_arch_never_crashes(run, new_arch, edit):
    """A wrong chip description may leave no kernel, and that is all."""
    added = ("--arch", "gfx-new", "--arch-file", new_arch(edit))
    assert run("kernels", *added, "--op", "gemm", "--dtype", "bf16", "--rule-set", "full", "--count").code == 0
    assert run("select", "gemm:m=64,n=64,k=64,dtype=bf16", *added).code in (0, 3)
    name = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16@gfx-new"
    assert run("check", name, "--fix", *added[2:]).code in (0, 1)
