# SPDX-License-Identifier: MIT
from tilewise.ctypes_utils import *  # noqa: F403  the original finds its modules beside each other
