# SPDX-License-Identifier: MIT
"""tilewise check: valid or not, why not, what would be; and every way to hand over a config."""
import json

import pytest

CUDA = "gemm_bf16_rcr_compv3_cshuffle_intrawave_64x64x32_2x2x1_16x8x16_va8_vb8_vc8"
INVALID = "gemm_bf16_rcr_compv4_cshuffle_interwave_256x128x32_2x2x1_32x32x16_va8_vb8_vc8@gfx942"
WAVES_ALONG_K = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x32_2x1x2_32x32x16_va8_vb8_vc8@gfx942"


def bent(kernel, **changes):
    return json.dumps({**kernel["config"], **changes})


def test_valid_name(run):
    name = CUDA + "@sm_90a"
    text, answer = run("check", name), run("check", name, "--json")
    assert text.code == 0 and text.out.splitlines() == [name, "valid"], text
    assert answer.code == 0 and answer.json["valid"] and answer.json["available"] and answer.json["violations"] == []
    assert answer.json["family"] == "mma_gemm" and "corrected" not in answer.json and "without_code" not in answer.json


def test_valid_without_code_says_why(run):
    """Waves along k whose sums find no room, and an option that the family does not have."""
    for name, rule in ((WAVES_ALONG_K, "code_wave_k"), (CUDA + "_swap@sm_90a", "code_option")):
        answer = run("check", name, "--fix", "--json")
        assert answer.code == 0 and answer.json["valid"] and answer.json["available"] is False, answer
        assert answer.json["without_code"]["rule"] == rule and rule in run("check", name).out
    assert answer.json["corrected_name"] == CUDA + "@sm_90a"
    assert answer.json["changes"] == [{"field": "swap_ab", "from": "true", "to": "false", "rule": "code_option"}]


def test_invalid_config_names_rule_have_and_need(run):
    answer = run("check", INVALID, "--json")
    assert answer.code == 1 and answer.json["valid"] is False, answer
    rules = {item["rule"]: item for item in answer.json["violations"]}
    assert {"scheduler", "double_buffer"} <= set(rules)
    assert "interwave" in rules["scheduler"]["have"] and "intrawave" in rules["scheduler"]["need"]
    assert "true" in rules["double_buffer"]["need"]
    text = run("check", INVALID)
    assert text.code == 1
    for item in answer.json["violations"]:
        line = next(line for line in text.out.splitlines() if line.startswith(item["rule"] + " "))
        assert item["have"] in line and item["need"] in line


def test_every_broken_rule_has_a_reason(run):
    """The rules that check names are listed with why they exist."""
    listed = {line.split(None, 1)[0]: line.split(None, 1)[1] for line in run("check", "--rules").out.splitlines()[1:]}
    broken = {item["rule"] for item in run("check", INVALID, "--json").json["violations"]}
    assert broken <= set(listed) and all(listed.values())


def test_fix_shows_changes_and_a_config_that_is_valid(run):
    answer = run("check", INVALID, "--fix", "--json")
    assert answer.code == 0, answer
    fixed = answer.json
    assert fixed["valid"] is False and fixed["violations"]  # of what was given
    changed = {item["field"]: item for item in fixed["changes"]}
    assert changed["scheduler"]["from"] == "interwave" and changed["scheduler"]["to"] == "intrawave"
    assert all(item["rule"] for item in fixed["changes"])
    again = run("check", "-", "--json", stdin=json.dumps(fixed["corrected"]))
    assert again.code == 0 and again.json["valid"], again
    assert again.json["name"] == fixed["corrected_name"]
    text = run("check", INVALID, "--fix")
    assert text.code == 0 and text.out.rstrip().endswith(f"valid as {fixed['corrected_name']}"), text


def test_fix_leaves_a_valid_config_alone(run, a_kernel):
    answer = run("check", a_kernel["name"], "--fix", "--json").json
    assert answer["valid"] and answer["changes"] == [] and answer["corrected"] == a_kernel["config"]


def test_what_cannot_be_fixed_is_said(run, new_arch):
    """The tile is the user's intent: it is never changed where nothing has code, and the refusal stands."""
    path = new_arch(lambda spec: spec.update(shared_bytes=1))
    name = "gemm_bf16_rcr_compv3_cshuffle_intrawave_64x64x32_2x2x1_32x32x16_va8_vb8_vc8@gfx-new"
    answer = run("check", name, "--fix", "--json", "--arch-file", path)
    assert answer.code == 1 and answer.json["remaining"], answer
    assert answer.json["corrected"]["tile"] == "64x64x32"
    text = run("check", name, "--fix", "--arch-file", path)
    assert text.code == 1 and "cannot be corrected" in text.out


@pytest.mark.parametrize("changes", [
    {"wave": "3x3x3"}, {"warp_tile": "5x5x5"}, {"scheduler": "auto"}, {"pipeline": "compv4"}, {"vector_a": 64},
    {"vector_b": 0}, {"stages": 9}, {"producer_waves": 3}, {"dtype_out": "int8"}, {"dtype_acc": "fp16"},
    {"math": "tf32"}, {"deterministic": False}, {"cluster": "2x2"}, {"num_groups_to_merge": 4},
    {"blocks_per_unit": 100}, {"stream_k": "tree", "split_k": 4},
    # More options than any one correction handles:
    {"cluster": "2x2", "swap_ab": True, "gather": "async", "producer_waves": 1, "stages": 3},
])
def test_fixes(run, a_kernel, changes):
    answer = run("check", bent(a_kernel, **changes), "--fix", "--json")
    assert answer.code == 0 and answer.json["remaining"] == [], answer
    assert run("check", answer.json["corrected_name"]).code == 0


def test_demo_shows_a_correction_that_works(run, root):
    """The demo's example of --fix should end in a valid config, not in a refusal."""
    name = next(word for word in (root / "tools/demo").read_text().split() if word.startswith("gemm_") and "@" in word)
    assert run("check", name, "--fix").code == 0


def test_fix_takes_away_every_option_the_arch_lacks(run, ask):
    kernel = ask("kernels", "--arch", "cpu-generic", "--op", "gemm", "--dtype", "fp32", "--rule-set", "tiny")["kernels"][0]
    config = bent(kernel, persistent=True, stream_k="tree", cluster="2x2", raster="n", raster_group=4, gather="async")
    answer = run("check", config, "--fix", "--json")
    assert answer.code == 0, answer


def test_json_file_stdin_and_inline_are_the_same(run, a_kernel, tmp_path):
    text = json.dumps(a_kernel["config"], indent=2)
    path = tmp_path / "a config.json"
    path.write_text(text)
    answers = [run("check", str(path), "--json"), run("check", "-", "--json", stdin=text), run("check", text, "--json"),
               run("check", a_kernel["name"], "--json")]
    assert all(answer.code == 0 for answer in answers)
    assert all(answer.out == answers[0].out for answer in answers)


def test_name_in_a_file_and_on_stdin(run, a_kernel, tmp_path):
    path = tmp_path / "name.txt"
    path.write_text(a_kernel["name"] + "\n")
    assert run("check", str(path)).code == 0
    assert run("check", "-", stdin=a_kernel["name"] + "\n").code == 0


def test_path_with_an_at_sign_is_still_a_path(run, a_kernel, tmp_path):
    """A name has an @, but so has many a home or build folder."""
    path = tmp_path / "me@here.json"
    path.write_text(json.dumps(a_kernel["config"]))
    assert run("check", str(path)).code == 0


def test_malformed_json_is_shown_with_line_and_column(run, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text('{\n  "op": "gemm",\n  "dtype" "bf16"\n}\n')
    answer = run("check", str(path))
    assert answer.code == 2 and str(path) in answer.err and "line 3, column 11" in answer.err, answer
    answer = run("check", "-", stdin='{"op": "ge')
    assert answer.code == 2 and "line 1, column" in answer.err


def test_blank_lines_before_the_json_count(run, tmp_path):
    """An editor jumps to the line of the message."""
    path = tmp_path / "bad.json"
    path.write_text('\n\n{"op": "gemm",\n  "dtyp": "bf16"}\n')
    answer = run("check", str(path))
    assert answer.code == 2 and "line 4" in answer.err, answer


@pytest.mark.parametrize("text", ["[1, 2]", "// a comment\n{}", "", "\ufeff{}", "null"])
def test_file_that_holds_no_config(run, tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    answer = run("check", str(path))
    assert answer.code == 2 and str(path) in answer.err, answer
    assert "JSON" in answer.err, "a .json file that is not JSON of a config is told so"


def test_unknown_field_gets_a_suggestion(run, a_kernel):
    answer = run("check", bent(a_kernel, pipelin="mem"))
    assert answer.code == 2 and "'pipelin'" in answer.err and "did you mean 'pipeline'?" in answer.err, answer


def test_missing_field_is_named(run, a_kernel):
    config = {key: value for key, value in a_kernel["config"].items() if key != "warp_tile"}
    answer = run("check", json.dumps(config))
    assert answer.code == 2 and "'warp_tile' is missing" in answer.err, answer


@pytest.mark.parametrize("changes, told", [
    ({"tile": "128x128"}, "tile"), ({"tile": 128}, "tile"), ({"tile": "-1x1x1"}, "tile"),
    ({"tile": "99999999999999999999x1x1"}, "tile"), ({"vector_a": "8"}, "vector_a"), ({"vector_a": 1e9}, "vector_a"),
    ({"vector_a": 1.5}, "vector_a"), ({"vector_a": -1}, "vector_a"), ({"double_smem_buffer": 1}, "double_smem_buffer"),
    ({"double_smem_buffer": None}, "double_smem_buffer"), ({"pipeline": "compv9"}, "did you mean 'compv"),
    ({"ct_filter": "0x0"}, "ct_filter"), ({"pad": "knm"}, "pad"), ({"arch": "GFX"}, "arch"), ({"op": []}, "op"),
])
def test_bad_value_names_its_field(run, a_kernel, changes, told):
    answer = run("check", bent(a_kernel, **changes))
    assert answer.code == 2 and told in answer.err and not answer.out, answer


def test_unknown_arch(run, a_kernel):
    answer = run("check", a_kernel["name"].replace("@gfx942", "@gfx94"))
    assert answer.code == 2 and "unknown arch 'gfx94'; did you mean 'gfx942'?" in answer.err, answer


@pytest.mark.parametrize("operand", ["no-such-file.json", ".", "", " "])
def test_missing_file(run, operand):
    answer = run("check", operand)
    assert answer.code == 2 and "cannot read" in answer.err and "@arch" in answer.err, answer


@pytest.mark.parametrize("old, new, told", [
    ("gemm_", "gem_", "gemm"),
    ("gemm_", "", "gemm"),
    ("bf16", "bf17", "bf16"),
    ("compv3", "compv9", "compv9"),
    ("@gfx942", "_zzz@gfx942", "zzz"),
    ("@gfx942", "_@gfx942", "is spelled"),
    ("@gfx942", "@", "a name of at most"),
    ("@gfx942", "_va1@gfx942", "va1"),
    ("_va8_vb8", "_vb8_va8", "va8"),
    ("_va8", "_va08", "is spelled"),
    ("_va8", "_va-8", "va-8"),
    ("_va8", "_VA8", "VA8"),
])
def test_misspelt_names(run, old, new, told):
    """A name has one spelling, and the message says which part is not it."""
    name = "gemm_bf16_rcr_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8@gfx942"
    assert run("check", name).code == 0
    answer = run("check", name.replace(old, new))
    assert answer.code == 2 and told in answer.err and not answer.out, answer


@pytest.mark.parametrize("hostile", [
    '{"a":' * 5000, "[" * 100000, '{"op":"' + "x" * 100000 + '"}', "{" + "\\" * 1000, '{"op":"\\ud800"}', "{\x01}",
    "gemm_" * 10000 + "@x", "@" * 1000, "gemm_ünïcode_@gfx942", '{"op":1e999}', '{"op":-}', '{"op":"gemm","op":"gemm"}',
])
def test_hostile_text_is_a_short_usage_error(run, hostile):
    answer = run("check", "-", stdin=hostile)
    assert answer.code == 2 and answer.err and len(answer.err) < 2000, answer


def test_extreme_numbers_are_only_violations(run, a_kernel):
    """Nothing overflows, nothing divides by zero: extremes are refused like anything else."""
    huge, none = "65536x65536x65536", "0x0x0"
    for shape, count in ((huge, 65536), (none, 0)):
        config = bent(a_kernel, tile=shape, wave=shape, warp_tile=shape, stages=count, blocks_per_unit=count,
                      split_k=count, vector_a=count, vector_b=count, vector_c=count, producer_waves=count)
        for words in ((), ("--fix",)):
            answer = run("check", config, "--json", *words)
            assert answer.code == (1 if not words or answer.json["remaining"] else 0), answer
            assert len(answer.json["violations"]) > 3, answer


def test_needs_an_operand(run):
    answer = run("check")
    assert answer.code == 2 and "check" in answer.err
