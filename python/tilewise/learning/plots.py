# SPDX-License-Identifier: MIT
"""Pictures of scores, by matplotlib."""
from __future__ import annotations

import os
import pathlib

import numpy as np

from .scores import Judged
from .table import Table


def write_plots(folder: str | os.PathLike[str], table: Table, judged: Judged, predicted_us: np.ndarray) -> None:
    """efficiency.png: the share of problems that reach an efficiency; times.png: predicted times against measured ones."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    where = pathlib.Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name, values in {"choice": judged.efficiency, **{f"best of the first {n}": e for n, e in judged.after_measuring.items()}}.items():
        axes.plot(np.sort(values), np.linspace(0, 1, len(values)), label=name)
    axes.set(xlabel="efficiency", ylabel="share of problems")
    axes.legend()
    figure.savefig(where / "efficiency.png", dpi=120, bbox_inches="tight")
    figure, axes = pyplot.subplots(figsize=(5, 5))
    axes.loglog(table.time, predicted_us, ".", markersize=1)
    axes.set(xlabel="measured, us", ylabel="predicted, us")
    figure.savefig(where / "times.png", dpi=120, bbox_inches="tight")
    pyplot.close("all")
