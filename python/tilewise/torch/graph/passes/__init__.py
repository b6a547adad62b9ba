# SPDX-License-Identifier: MIT
"""The passes over a graph of ATen operations, one file each, in the order in which they run."""
from . import (convolutions, epilogues, fold_batch_norm, fold_constants, fold_scale, gradients, pack_weights,
               products)

ALL = (fold_constants.run, convolutions.run, products.run, gradients.run, fold_batch_norm.run, fold_scale.run,
       epilogues.run, pack_weights.run)
