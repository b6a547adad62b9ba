# SPDX-License-Identifier: MIT
"""tools/isa_report on kernels that are built here: main loops do what they should, and one that does not is found out."""
import importlib.machinery
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "isa_report"
needs_clang = pytest.mark.skipif(not shutil.which("clang++-22") or not shutil.which("llvm-objdump-22"), reason="clang 22 or llvm 22 is not installed")


@pytest.fixture(scope="module", name="tool")
def fixture_tool():
    loader = importlib.machinery.SourceFileLoader("isa_report", str(TOOL))
    spec = importlib.util.spec_from_loader("isa_report", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["isa_report"] = module
    loader.exec_module(module)
    return module


def instructions(tool, *names):
    """Code of four bytes an instruction; "name>N" jumps to number N."""
    code = []
    for index, text in enumerate(names):
        name, _, target = text.partition(">")
        code.append(tool.Instruction(4 * index, name, "", 4 * int(target) if target else None))
    return code


def test_the_main_loop_is_the_innermost_with_products(tool):
    code = instructions(tool, "s_mov_b32", "v_mfma_a", "v_add", "v_mfma_b", "s_cbranch_scc1>2", "s_cbranch_scc0>1", "s_endpgm")
    assert [one.name for one in tool.main_loop(code)] == ["v_add", "v_mfma_b", "s_cbranch_scc1"]


def test_a_jump_back_that_is_no_loop_is_none(tool):
    code = instructions(tool, "s_branch>3", "v_mfma_a", "s_endpgm", "s_branch>1")
    assert tool.main_loop(code) == []


def test_a_name_says_what_the_block_is(tool):
    shape = tool.Shape.of("gemm_fp8_rcr_comp_async_cshuffle_intrawave_128x256x64_2x2x1_16x16x64_b-bf8_va16_vb16_vc8_dsb@gfx942")
    assert (shape.dtype, shape.pipeline, shape.tile, shape.waves, shape.side) == ("fp8", "comp_async", (128, 256, 64), 4, 16)
    assert shape.is_plain("gfx942") and shape.squares() == [4, 8] and shape.chunks_of_thread() == 6


def test_operands_across_k_are_plain_where_reads_turn_them_around(tool):
    across = "{}_crr_comp_async_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va{}_vb{}_vc8_dsb"
    bf16, narrow, int8 = (tool.Shape.of("gemm_" + across.format(*of)) for of in (("bf16", 8, 8), ("bf16", 8, 4), ("int8", 16, 16)))
    assert bf16.is_plain("gfx950") and not bf16.is_plain("gfx942") and not narrow.is_plain("gfx950") and not int8.is_plain("gfx950")
    most, exact = tool.limits(bf16, "gfx950")
    assert most["valu_share"] == 0.2 and most["full_waits"] == 0 and exact["ds_read_b128"] == 8 and exact["direct_copies"] == 4


def test_a_name_says_what_a_convolution_is(tool):
    shape = tool.Shape.of("grouped_conv_bwd_weight_fp16_ndhwgc_3d_mem_cshuffle_intrawave_128x64x32_4x1x1_32x32x16_va8_vb8_vc4_splitimage@gfx90a")
    assert (shape.op, shape.dtype, shape.layout, shape.pipeline, shape.tile) == ("conv_bwd_weight", "fp16", "ndhwgc", "mem", (128, 64, 32))
    assert shape.is_gathered() and not shape.in_chunks() and shape.options == {"splitimage"}
    strips = "grouped_conv_fwd_fp32_nhwgc_2d_basic_v1_default_intrawave_256x32x1_4x1x1_32x32x1_va4_vc4_spec-depthwise"
    assert tool.Shape.of(f"{strips}_filter3x3_stride1x1_dilation1x1@gfx942").options == {"depthwise", "filter"}


def test_convolutions_have_limits_of_their_own(tool):
    tiles = "cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8"

    def limits(op, arch, pipeline="compv3", layout="nhwgc_2d", options=""):
        return tool.limits(tool.Shape.of(f"grouped_conv_{op}_bf16_{layout}_{pipeline}_{tiles}{options}@{arch}"), arch)

    most, exact = limits("fwd", "gfx942")
    assert most["valu_share"] == 0.4 and exact == {"barriers": 2, "ds_read_b128": 8, "ds_write_b128": 4, "loads_x4": 4}
    # Weights are copied straight to shared memory, the gathered operand is not: its ring waits for loads.
    most, exact = limits("fwd", "gfx942", "comp_async", options="_dsb")
    assert "full_waits" not in most and exact["direct_copies"] == 8 and exact["ds_write_b128"] == exact["loads_x4"] == 2
    assert limits("bwd_weight", "gfx942", layout="ndhwgc_3d")[0]["valu_share"] == 0.9
    assert limits("bwd_data", "gfx950")[0]["valu_share"] == 0.8
    assert limits("bwd_data", "gfx942")[0]["lane_spills"] == 0 and "lane_spills" not in limits("bwd_data", "gfx942", options="_splitimage")[0]
    elements = limits("fwd", "gfx942", options="_splitimage")[0], tool.limits(tool.Shape.of(
        "grouped_conv_fwd_bf16_nhwgc_2d_compv3_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_splitimage@gfx942"), "gfx942")[0]
    assert "scratch" in elements[0] and "scratch" not in elements[1]
    assert "lane_spills" not in limits("bwd_weight", "gfx942", layout="ngcdhw_3d")[0]
    depthwise = "grouped_conv_fwd_bf16_nhwgc_2d_basic_v1_default_intrawave_32x64x1_4x1x1_8x64x1_va8_vc8_spec-depthwise@gfx942"
    assert tool.limits(tool.Shape.of(depthwise), "gfx942") == ({"vgpr_spills": 0, "scratch": 0}, {})


def test_what_is_no_kernel_is_refused(tool):
    with pytest.raises(ValueError, match="conv"):
        tool.Shape.of("grouped_conv_fwd_bf16")


def test_a_miss_is_named(tool):
    shape = tool.Shape.of("gemm_bf16_rcr_comp_async_cshuffle_intrawave_128x128x32_2x2x1_32x32x16_va8_vb8_vc8_dsb@gfx942")
    found = dict.fromkeys(("mfma", "loads_x4", "vgpr_spills", "scratch", "accumulator_moves", "valu_share", "shared_share", "ds_write_b128"), 0)
    found |= {"steps": 1.0, "ds_read_b128": 8, "direct_copies": 16, "barriers": 1, "registers": 128, "lane_spills": 0, "full_waits": 0}
    assert tool.misses_of(shape, "gfx942", found) == []
    assert tool.misses_of(shape, "gfx942", found | {"full_waits": 1, "lane_spills": 3}) == ["lane_spills 3 > 0", "full_waits 1 > 0"]
    assert tool.misses_of(shape, "gfx942", found | {"barriers": 2}) == ["barriers 2, not 1"]


# 40 kernels of each arch, spread over the rule set default: what selection uses keeps the limits.
@needs_clang
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_kernels_of_the_default_set_keep_the_limits(arch, binary):
    done = subprocess.run([TOOL, "--arch", arch, "--sample", "40", "--json", "--tilewise", binary], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(done.stdout)["kernels"]
    assert len(rows) >= 20 and {row["kernel"].split("_")[0] for row in rows} == {"gemm", "grouped"}
    assert not (missed := [(row["kernel"], row["misses"]) for row in rows if row["misses"]]), missed


def test_bad_input_says_what_is_wrong():
    for arguments in (["--arch", "gfx1100"], ["--arch", "gfx942", "--sample", "0"], ["--arch", "gfx942", "x.hsaco"],
                      ["--arch", "gfx942", "--sample", "4", "--shard", "1/2"]):
        done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "error" in done.stderr, done
