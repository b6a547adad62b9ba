# SPDX-License-Identifier: MIT
"""A grouped convolution of an example, in one of its directions: the problem, random operands, and the result that the
reference gives for them.
"""
from conv_reference import backward_data, backward_weight, forward
from example import random


class ConvCase:
    """`operands` are in the order of a runner's run(): forward x, w; bwd_data dy, w; bwd_weight x, dy."""

    def __init__(self, problem, dtype, rng):
        self.problem = problem
        self.x, self.w, self.dy = (random(rng, shape, dtype) for shape in
                                   (problem.input_shape(), problem.weight_shape(), problem.output_shape()))
        self.input_size, self.filter_size = self.x.shape[1:-2], self.w.shape[2:-1]
        axes = "dhw"[3 - len(self.input_size):]
        self.geometry = {word: tuple(getattr(problem, f"{field}_{axis}") for axis in axes) for word, field in
                         (("stride", "stride"), ("padding", "pad"), ("dilation", "dilation"))}
        if problem.direction == "forward":
            self.operands = self.x, self.w
            self.want = forward(*self.operands, **self.geometry)
        elif problem.direction == "bwd_data":
            self.operands = self.dy, self.w
            self.want = backward_data(*self.operands, self.input_size, **self.geometry)
        else:
            self.operands = self.x, self.dy
            self.want = backward_weight(*self.operands, self.filter_size, **self.geometry)

    def check(self, checks, label, have):
        """Whether a result is right, as one of the checks."""
        return checks.close(label, have, self.want, self.problem.flops / self.want.size / 2)
