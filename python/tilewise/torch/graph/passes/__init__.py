# SPDX-License-Identifier: MIT
"""The passes over a graph of ATen operations, one file each, in the order in which they run."""
from . import (biases, concatenations, convolutions, epilogues, fold_batch_norm, fold_constants, fold_scale, gradients,
               movements, pack_weights, pools, products, shared_inputs)

ALL = (fold_constants.run, convolutions.run, products.run, gradients.run, concatenations.run, biases.run, movements.run,
       fold_batch_norm.run, pools.run, fold_scale.run, epilogues.run, shared_inputs.run, pack_weights.run)
