# SPDX-License-Identifier: MIT
"""tilewise.crawl on ONNX files: what is found, what is listed as not mapped, and sizes that the caller gives."""
import json
import math

import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402  only where onnx is installed

from tilewise._verbs import main  # noqa: E402
from tilewise.crawl import crawl  # noqa: E402

FLOAT = TensorProto.FLOAT


@pytest.fixture
def saved(tmp_path):
    """saved(nodes, inputs, outputs, weights) -> the path of a model; weights: {name: sizes}"""

    def save(nodes, inputs, outputs, weights, **options):
        def tensors(sizes, kind=FLOAT):
            return [helper.make_tensor_value_info(name, kind, size) for name, size in sizes.items()]
        constants = [helper.make_tensor(name, FLOAT, size, bytes(4 * math.prod(size)), raw=True)
                     for name, size in weights.items()]
        graph = helper.make_graph(nodes, "graph", tensors(inputs), tensors(outputs), constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)])
        path = tmp_path / "small-net.onnx"
        onnx.save(model, path)
        return str(path)

    return save


@pytest.fixture
def network(saved):
    """Two equal convolutions, a strided depthwise one with SAME padding, a transposed one, a linear layer."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["y1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["y1"], ["z1"]),
        helper.make_node("Conv", ["z1", "w1", "b1"], ["y2"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["y2", "w2"], ["y3"], group=8, strides=[2, 2], auto_pad="SAME_UPPER"),
        helper.make_node("ConvTranspose", ["y3", "w3"], ["y4"], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["y4"], ["y5"]),
        helper.make_node("Flatten", ["y5"], ["y6"]),
        helper.make_node("Gemm", ["y6", "w4", "b4"], ["y"], transB=1),
    ]
    return saved(nodes, {"x": ["N", 8, 16, "W"]}, {"y": ["N", 10]},
                 {"w1": [8, 8, 3, 3], "b1": [8], "w2": [8, 1, 3, 3], "w3": [8, 4, 2, 2], "w4": [10, 4], "b4": [10]})


def test_every_layer_is_found_with_its_count(network):
    crawled = crawl(network, sizes={"N": 4, "W": 20})
    conv = "dilation=1x1,dtype=fp32,layout=ngchw"
    assert crawled.counts == {
        f"conv_fwd:n=4,g=1,c=8,k=8,in=16x20,filter=3x3,stride=1x1,pad=1x1,{conv},epilogue=bias": 2,
        f"conv_fwd:n=4,g=8,c=8,k=8,in=16x20,filter=3x3,stride=2x2,pad=0:1x0:1,{conv}": 1,
        f"conv_bwd_data:n=4,g=1,c=4,k=8,in=16x20,filter=2x2,stride=2x2,pad=0x0,{conv}": 1,
        "gemm:m=4,n=10,k=4,dtype=fp32,layout=rcr,epilogue=bias": 1,
    }
    assert not crawled.unmapped and crawled.network == "small-net"


def test_backward_adds_two_gradients_of_each_in_another_type(network):
    forward = crawl(network, sizes={"N": 4, "W": 20}, dtype="bf16").counts
    both = crawl(network, sizes={"N": 4, "W": 20}, dtype="bf16", backward=True).counts
    assert sum(both.values()) == 3 * sum(forward.values()) and all("dtype=bf16" in text for text in both)
    assert "gemm:m=4,n=4,k=10,dtype=bf16,layout=rrr" in both and "gemm:m=10,n=4,k=4,dtype=bf16,layout=crr" in both


def test_sizes_that_are_not_known_are_listed(network, capsys):
    crawled = crawl(network, sizes={"N": 4})
    assert not any(text.startswith("conv") for text in crawled.counts) and len(crawled.unmapped) == 4
    assert crawled.unmapped[0].reason == "a size of x is not known: W; give --set W=N"
    assert main(["crawl", network, "--set", "M=4"]) == 2
    assert "--set M: the model has no such symbol; it has N, W" in capsys.readouterr().err


def test_what_cannot_be_mapped_is_listed(saved, capsys):
    nodes = [helper.make_node("Einsum", ["a", "b"], ["c"], equation="ij,jk->ik", name="sum"),
             helper.make_node("Secret", ["c"], ["d"], domain="my.ops", name="secret"),
             helper.make_node("MatMul", ["a", "b"], ["e"], name="product")]
    path = saved(nodes, {"a": [2, 3], "b": [3, 4]}, {"c": [2, 4], "d": [2, 4], "e": [2, 4]}, {})
    assert main(["crawl", path, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "network": "small-net", "problems": [{"problem": "gemm:m=2,n=4,k=3,dtype=fp32,layout=rrr", "count": 1}],
        "unmapped": [{"node": "sum", "operation": "Einsum", "reason": "no problem computes the same"},
                     {"node": "secret", "operation": "Secret", "reason": "an operator of my.ops"}]}
    assert "2 operations that multiply are not mapped" in err
    assert main(["crawl", path]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "gemm:m=2,n=4,k=3,dtype=fp32,layout=rrr  # small-net, 1x",
        "# not mapped: Einsum sum: no problem computes the same", "# not mapped: Secret secret: an operator of my.ops"]


def test_a_file_of_something_else_is_refused(tmp_path, capsys):
    for content, told in ((b"", "it has no graph"), (b"\xff" * 300, "no ONNX file"), (b"\x08", "no ONNX file")):
        (tmp_path / "x.onnx").write_bytes(content)
        assert main(["crawl", str(tmp_path / "x.onnx")]) == 2
        assert told in capsys.readouterr().err


def test_an_operator_that_is_none_is_listed(saved, capsys):
    nodes = [helper.make_node("Conv", ["x"], ["a"]), helper.make_node("Conv", ["x", "w"], ["b"], strides=[0, 0], auto_pad="SAME_UPPER"),
             helper.make_node("Conv", ["x", "w"], ["c"], pads=[1]), helper.make_node("Gemm", ["x", "w"], ["d"], transA="yes"),
             helper.make_node("Einsum", ["x"], ["e"], name="none\ngemm:m=1,n=1,k=1", equation="i->i")]
    path = saved(nodes, {"x": [1, 8, 16, 16]}, {}, {"w": [8, 8, 3, 3]})
    assert main(["crawl", path]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 5 and all(line.startswith("# not mapped: ") for line in lines), out
    assert "none gemm:m=1,n=1,k=1" in lines[-1] and "no operation of" in err


def test_a_type_that_the_library_has_not_is_listed(saved):
    path = saved([helper.make_node("MatMul", ["a", "b"], ["c"])], {"a": [2, 3], "b": [3, 4]}, {"c": [2, 4]}, {})
    model = onnx.load(path)
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(model, path)
    assert [one.reason for one in crawl(path).unmapped] == ["a is of type double"]


def test_a_product_whose_gradients_are_no_problem_still_counts(saved):
    path = saved([helper.make_node("MatMul", ["a", "b"], ["c"])], {"a": [2, 3], "b": [5, 3, 4]}, {"c": [5, 2, 4]}, {})
    crawled = crawl(path, backward=True)
    assert crawled.counts == {"gemm:m=2,n=4,k=3,dtype=fp32,layout=rrr,batch=5,batch_stride_a=0": 1}
    assert [one.reason for one in crawled.unmapped] == ["gradients: its operands have gaps or are repeated"]
