# SPDX-License-Identifier: MIT
"""tilewise crawl on a function that makes a model: the problems of its layers with their counts, and what torch multiplies itself."""
import importlib
import json

import pytest
import torch

import tilewise.torch as tt
from tilewise._verbs import main

MODULE = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.again, self.last = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 4)
    def forward(self, x):
        x = self.last(self.again(self.again(self.first(x))).mean((2, 3)))
        return x @ x.T
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(10, 16), nn.Linear(16, 8)
    def forward(self, words):
        return self.linear(self.table(words))
made = Net()
number = 3
"""


@pytest.fixture
def crawl(tmp_path, monkeypatch, capsys):
    """crawl(*words) -> (exit code, the answer, messages), in a folder with the module crawled_nets."""
    (tmp_path / "crawled_nets.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(*words):
        code = main(["crawl", *words, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out), err

    return run


def test_the_layers_of_a_model_are_counted(crawl):
    code, told, err = crawl("crawled_nets:Net", "--input", "2x3x10x10")
    counts = {one["problem"]: one["count"] for one in told["problems"]}
    assert code == 0 and told["network"] == "Net" and sorted(counts.values()) == [1, 1, 2]
    assert list(counts) == tt.problems(importlib.import_module("crawled_nets").Net().eval(), torch.zeros(2, 3, 10, 10))
    assert [(one["operation"], one["node"]) for one in told["unmapped"]] == [("mm", "1x")] and "1 operations that multiply" in err
    assert crawl("crawled_nets:made", "--input", "2x3x10x10")[1]["problems"] == told["problems"]


def test_backward_adds_the_gradients_in_another_type(crawl):
    _, told, _ = crawl("crawled_nets:Net", "--input", "2x3x10x10", "--backward", "--dtype", "bf16")
    texts = [one["problem"] for one in told["problems"]]
    assert all("dtype=bf16" in text for text in texts)
    assert {text.partition(":")[0] for text in texts} == {"gemm", "conv_fwd", "conv_bwd_data", "conv_bwd_weight"}


def test_an_input_has_a_type_of_its_own(crawl):
    _, told, _ = crawl("crawled_nets:Words", "--input", "4x5:int64")
    assert [one["problem"].split(",dtype")[0] for one in told["problems"]] == ["gemm:m=20,n=8,k=16"]


@pytest.mark.parametrize("words, told", [
    (["crawled_nets:Net"], "give --input"), (["crawled_nets:Net", "--input", "3y4"], "not '3y4'"),
    (["crawled_nets:Net", "--input", "3:colour"], "not '3:colour'"), (["crawled_nets:nothing", "--input", "3"], "has no nothing"),
    (["nowhere_at_all:Net", "--input", "3"], "No module named 'nowhere_at_all'"), (["crawled_nets:number", "--input", "3"], "need a torch.nn.Module"),
    (["crawled_nets:Net", "--set", "N=8"], "takes --input"), (["x.onnx", "--input", "3"], "--input is for MODULE:FUNCTION"),
    (["crawled_nets:Net", "--input", "3", "--dtype", "fp99"], "need one of fp32"),
    (["crawled_nets:Net", "--input", "2x3x10x10", "--dtype", "fp8"], "need one of fp32, fp16, bf16, in which torch"),
    (["crawled_nets:Net", "--input", "2x3x10x10", "--dtype", "int8"], "need one of fp32, fp16, bf16, in which torch"),
])
def test_what_cannot_be_is_said(crawl, words, told):
    code, answer, err = crawl(*words)
    assert code == 2 and told in answer["error"]["message"] and told in err
