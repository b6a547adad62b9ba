#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the layers of common networks as problems, one a line: what `make packs` builds kernels for.

    problems/common_layers.py --dtype bf16                          forward, and the gradients
    problems/common_layers.py --dtype fp16 --epilogue bias+relu     forward alone, each with this epilogue
"""
import argparse

BATCHES = (1, 8, 64)
IMAGE_SIZE = 224

# Convolutions: input channels, output channels, size of the input, filter, stride, groups.
RESNET = [(3, 64, 224, 7, 2, 1)] + [
    layer for width, size in ((64, 56), (128, 28), (256, 14), (512, 7))
    for layer in ((width * 4, width, size, 1, 1, 1), (width, width, size, 3, 1, 1), (width, width * 4, size, 1, 1, 1),
                  (width * 2, width, size * 2, 1, 1, 1), (width, width, size * 2, 3, 2, 1),
                  (width * 2, width * 4, size * 2, 1, 2, 1))]
RESNEXT = [(width, width, size, 3, stride, 32) for width, size, stride in
           ((128, 56, 1), (256, 56, 2), (256, 28, 1), (512, 28, 2), (512, 14, 1), (1024, 14, 2), (1024, 7, 1))]
MOBILENET = [(3, 32, 224, 3, 2, 1)] + [
    layer for c, size, stride in ((96, 112, 2), (144, 56, 1), (144, 56, 2), (192, 28, 1), (192, 28, 2), (384, 14, 1),
                                  (576, 14, 1), (576, 14, 2), (960, 7, 1))
    for layer in ((c, c, size, 3, stride, c), (c // 6, c, size, 1, 1, 1), (c, c // 6, size // stride, 1, 1, 1))]
EFFICIENTNET = [(c, c, size, filter_size, stride, c) for c, size, filter_size, stride in
                ((32, 112, 3, 1), (144, 56, 5, 2), (240, 28, 5, 1), (240, 28, 3, 2), (480, 14, 3, 1), (672, 14, 5, 1),
                 (672, 14, 5, 2), (1152, 7, 5, 1))]
CONVNEXT = [(3, 96, 224, 4, 4, 1)] + [
    layer for c, size in ((96, 56), (192, 28), (384, 14), (768, 7))
    for layer in ((c, c, size, 7, 1, c), (c // 2, c, size * 2, 2, 2, 1))]
REGNET = [(c, c, size, 3, stride, c // 24) for c, size, stride in
          ((48, 56, 1), (120, 56, 2), (120, 28, 1), (336, 28, 2), (336, 14, 1), (888, 14, 2), (888, 7, 1))]
DENSENET = [(c, 128, size, 1, 1, 1) for c, size in ((64, 56), (256, 28), (512, 14), (1024, 7))] + [
    (128, 32, size, 3, 1, 1) for size in (56, 28, 14, 7)]
VIT = [(3, 768, 224, 16, 16, 1)]
CONVOLUTIONS = sorted({*RESNET, *RESNEXT, *MOBILENET, *EFFICIENTNET, *CONVNEXT, *REGNET, *DENSENET, *VIT})

# Linear layers: tokens of one example, inputs, outputs.
CLASSIFIERS = [(1, c, 1000) for c in (768, 1024, 1280, 2048)]
TRANSFORMERS = [(tokens, inputs, outputs) for tokens, width, hidden in
                ((197, 768, 3072), (128, 768, 3072), (512, 1024, 4096), (512, 2048, 8192), (512, 4096, 11008))
                for inputs, outputs in ((width, width), (width, 3 * width), (width, hidden), (hidden, width))]
CONVNEXT_LINEARS = [(size * size, inputs, outputs) for c, size in ((96, 56), (192, 28), (384, 14), (768, 7))
                    for inputs, outputs in ((c, 4 * c), (4 * c, c))]
LINEARS = sorted({*CLASSIFIERS, *TRANSFORMERS, *CONVNEXT_LINEARS})


def convolution(direction, batch, layer, more):
    c, k, size, filter_size, stride, groups = layer
    pad = 0 if filter_size == stride else filter_size // 2
    return (f"{direction}:n={batch},g={groups},c={c},k={k},in={size}x{size},filter={filter_size}x{filter_size},"
            f"stride={stride}x{stride},pad={pad}x{pad}{more}")


def problems(dtype, epilogue):
    more = f",dtype={dtype}" + (f",epilogue={epilogue}" if epilogue else "")
    directions = ("conv_fwd",) if epilogue else ("conv_fwd", "conv_bwd_data", "conv_bwd_weight")
    for batch in BATCHES:
        for layer in CONVOLUTIONS:
            for direction in directions:
                if direction != "conv_bwd_data" or layer[2] < IMAGE_SIZE:  # an image needs no gradient
                    yield convolution(direction, batch, layer, more)
        for tokens, inputs, outputs in LINEARS:
            rows = batch * tokens
            yield f"gemm:m={rows},n={outputs},k={inputs},layout=rcr{more}"
            if not epilogue:  # of the inputs, and of the weights
                yield f"gemm:m={rows},n={inputs},k={outputs},layout=rrr{more}"
                yield f"gemm:m={outputs},n={inputs},k={rows},layout=crr{more}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--epilogue", default="", help="such as bias+relu; none unless given")
    options = parser.parse_args()
    print(*problems(options.dtype, options.epilogue), sep="\n")


if __name__ == "__main__":
    main()
