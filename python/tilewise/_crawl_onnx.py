# SPDX-License-Identifier: MIT
"""The products and convolutions of an ONNX file, from its own shapes and those that onnx infers."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ._crawl_products import Fields, Found, Unmappable, convolution, product, transposed

DTYPES = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16", "FLOAT8E4M3FN": "fp8", "FLOAT8E5M2": "bf8", "INT8": "int8"}
# They multiply, but no problem of ours is the same.
OTHER_PRODUCTS = {"Attention", "ConvInteger", "DeformConv", "Einsum", "GRU", "LSTM", "MatMulInteger", "QLinearConv",
                  "QLinearMatMul", "RNN"}
WITH_BODY = {"If", "Loop", "Scan", "SequenceMap"}


class _Shapes:
    """Sizes and types of the tensors of a graph."""

    def __init__(self, graph: Any, types: Any):
        self._types = types
        self._known: dict[str, tuple[int, list[int | str]]] = {}
        for info in (*graph.input, *graph.value_info, *graph.output):
            tensor = info.type.tensor_type
            if tensor.HasField("shape"):
                sizes = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
                self._known[info.name] = tensor.elem_type, sizes
        for tensor in graph.initializer:
            self._known[tensor.name] = tensor.data_type, list(tensor.dims)

    def sizes(self, name: str) -> list[int]:
        if name not in self._known:
            raise Unmappable(f"the shape of {name} is not known")
        for size in self._known[name][1]:
            if isinstance(size, str):
                way = f"; give --set {size}=N" if size.isidentifier() else ""
                raise Unmappable(f"a size of {name} is not known: {size}{way}")
        return [int(size) for size in self._known[name][1]]

    def dtype(self, name: str) -> str:
        word = self._types.Name(self._known[name][0])
        if word not in DTYPES:
            raise Unmappable(f"{name} is of type {word.lower()}")
        return DTYPES[word]


def _set_sizes(onnx: Any, model: Any, sizes: Mapping[str, int]) -> None:
    """Symbols of the graph's tensors become numbers."""
    symbols: set[str] = set()
    for info in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param:
                symbols.add(dim.dim_param)
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    for name in sizes:
        if name not in symbols:
            raise ValueError(f"--set {name}: the model has no such symbol; it has {', '.join(sorted(symbols)) or 'none'}")


def _pads(attributes: Mapping[str, Any], x: list[int], filter: list[int], stride: list[int],
          dilation: list[int]) -> list[tuple[int, int]]:
    rank = len(filter)
    mode = attributes.get("auto_pad", b"NOTSET").decode()
    if mode == "NOTSET":
        pads = attributes.get("pads", [0] * 2 * rank)
        return [(pads[i], pads[rank + i]) for i in range(rank)]
    if mode == "VALID":
        return [(0, 0)] * rank
    found = []
    for size, taps, step, gap in zip(x[2:], filter, stride, dilation):
        total = max(0, (-(-size // step) - 1) * step + (taps - 1) * gap + 1 - size)
        less, more = total // 2, total - total // 2
        found.append((less, more) if mode == "SAME_UPPER" else (more, less))
    return found


def _convolution(node: Any, attributes: Mapping[str, Any], shapes: _Shapes) -> Fields:
    x, w, dtype = shapes.sizes(node.input[0]), shapes.sizes(node.input[1]), shapes.dtype(node.input[0])
    stride = attributes.get("strides", [1] * (len(x) - 2))
    dilation = attributes.get("dilations", [1] * (len(x) - 2))
    options = {"stride": stride, "dilation": dilation, "groups": attributes.get("group", 1),
               "bias": len(node.input) > 2 and bool(node.input[2])}
    if node.op_type == "Conv":
        return convolution(dtype, x, w, pads=_pads(attributes, x, w[2:], stride, dilation), **options)
    if attributes.get("auto_pad", b"NOTSET") != b"NOTSET" or "output_shape" in attributes:
        raise Unmappable("padding that follows from the size of the output")
    return transposed(dtype, x, w, shapes.sizes(node.output[0]), pads=_pads(attributes, x, w[2:], stride, dilation), **options)


def _product(node: Any, attributes: Mapping[str, Any], shapes: _Shapes) -> Fields:
    a, b, dtype = shapes.sizes(node.input[0]), shapes.sizes(node.input[1]), shapes.dtype(node.input[0])
    if node.op_type == "MatMul":
        return product(dtype, a, b)
    letters = ["c" if attributes.get(name) else "r" for name in ("transA", "transB")]
    a, b = (sizes[::-1] if letter == "c" else sizes for sizes, letter in zip((a, b), letters))
    fields = product(dtype, a, b, layout="".join(letters) + "r")
    if len(node.input) < 3 or not node.input[2]:
        return fields
    added = shapes.sizes(node.input[2])
    if added in ([b[1]], [1, b[1]]):
        return fields | {"epilogue": "bias"}
    if added == [a[0], b[1]]:
        return fields | {"d": "add"}
    raise Unmappable(f"adds a tensor of {added}; need one value for each column, or for each element")


def _load(path: str, sizes: Mapping[str, int]) -> Any:
    import onnx

    try:
        model = onnx.load(path, load_external_data=False)
        if model.functions:
            from onnx import inliner
            model = inliner.inline_local_functions(model)
    except OSError:
        raise
    except Exception as error:  # of onnx or of protobuf, which have classes of their own
        raise ValueError(f"{path}: no ONNX file: {error}") from None
    if not model.HasField("graph"):
        raise ValueError(f"{path}: no ONNX file: it has no graph")
    _set_sizes(onnx, model, sizes)
    try:
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:
        raise ValueError(f"{path}: onnx cannot infer its shapes: {error}") from None


def crawl_onnx(path: str, sizes: Mapping[str, int]) -> Iterator[Found]:
    import onnx

    model = _load(path, sizes)
    shapes = _Shapes(model.graph, onnx.TensorProto.DataType)
    for node in model.graph.node:
        name = node.name or next(iter(node.output), "")
        standard = node.domain in ("", "ai.onnx")
        mapped = {"Conv": _convolution, "ConvTranspose": _convolution, "Gemm": _product, "MatMul": _product}
        try:
            if not standard:
                raise Unmappable(f"an operator of {node.domain}")
            if node.op_type in WITH_BODY:
                raise Unmappable("its body is not looked into")
            if node.op_type in OTHER_PRODUCTS:
                raise Unmappable("no problem computes the same")
            if node.op_type in mapped:
                attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
                yield Found(name, node.op_type, mapped[node.op_type](node, attributes, shapes))
        except Unmappable as error:
            yield Found(name, node.op_type, None, str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # nobody has checked the file
            yield Found(name, node.op_type, None, f"its inputs or attributes are not those of the operator: {error}")
