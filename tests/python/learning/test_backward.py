# SPDX-License-Identifier: MIT
"""What models of backward convolutions choose, without a device."""
import json

import pytest

from tilewise._verbs import main

SIZES = (7, 14, 28, 56, 112)


@pytest.fixture(scope="module")
def models(write_records, tmp_path_factory):
    data, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("models")
    for op in ("conv_bwd_data", "conv_bwd_weight"):
        rows = [row for size in SIZES for channels in (32, 256)
                for row in write_records.swept(f"{op}:n=8,g=1,c={channels},k={channels},in={size}x{size},filter=3x3,pad=1x1,dtype=bf16", kernels=8,
                                               set=f"{op}_training@0")]
        write_records(data / f"{op}.csv", rows)
    assert main(["train", "--data_dir", str(data), "--out_dir", str(out), "--op", "grouped_conv", "--n_splits", "2", "--trees", "10"]) == 0
    return out


def test_seven_problems_have_a_choice(models, capsys):
    code = main(["validate", "backward-models", "--model_dir", str(models), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["models"] == ["grouped_conv_bwd_data_bf16_sm_90a", "grouped_conv_bwd_weight_bf16_sm_90a"]
    assert len(told["problems"]) == 7 and all(one["first"][0]["us"] <= one["first"][-1]["us"] for one in told["problems"])
    assert [one["name"] for one in told["targets"][1:3]] == ["grouped_conv_bwd_data_bf16_sm_90a: mean efficiency",
                                                            "grouped_conv_bwd_data_bf16_sm_90a: accuracy of predicted times"]
    assert code == (0 if all(one["met"] for one in told["targets"]) else 1)
    main(["validate", "backward-models", "--model_dir", str(models)])
    assert "TFLOPS on average; pipelines of the first 3: " in capsys.readouterr().out


def test_without_models_it_says_so(tmp_path, capsys):
    assert main(["validate", "backward-models", "--model_dir", str(tmp_path)]) != 0
    assert "model" in capsys.readouterr().err
