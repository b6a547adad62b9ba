# SPDX-License-Identifier: MIT
"""Learning which kernel to choose from measurements: what `tilewise train`, `predict` and `validate` are made of."""
