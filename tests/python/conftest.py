# SPDX-License-Identifier: MIT
"""What is tested is the kernel that was chosen, not a built-in one that serves while it is compiled; test_warm.py tests that."""
import os

os.environ.setdefault("TILEWISE_BACKGROUND", "0")
