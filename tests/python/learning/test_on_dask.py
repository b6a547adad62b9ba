# SPDX-License-Identifier: MIT
"""A fit by the workers of a Dask scheduler: the same choice, from the same examples."""
import distributed
import numpy as np
import pytest

import tilewise
from tilewise.learning.fit import Parameters, fit, predict
from tilewise.learning.on_dask import fit_on

from .test_fit import QUICK, made


def test_workers_fit_what_one_machine_fits():
    examples = made()
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        there = fit_on(cluster.scheduler_address)(examples, QUICK)
        assert there.num_trees() == QUICK.trees and there.feature_name() == examples.names
    assert np.abs(predict(there, examples, "residual") - predict(fit(examples, QUICK), examples, "residual")).mean() < 0.02


def test_what_it_cannot_fit_is_said():
    with pytest.raises(tilewise.UsageError, match="--scheduler fits the objective residual"):
        fit_on("tcp://127.0.0.1:1")(made(), Parameters(objective="mixed"))
