# SPDX-License-Identifier: MIT
from tilewise.dispatcher_common import *  # noqa: F403  the original finds its modules beside each other
