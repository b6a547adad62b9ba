# SPDX-License-Identifier: MIT
"""Fitting on the workers of a Dask cluster. They hold the examples in parts and sum up in another order than one machine does, so the trees
are not the same to the bit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._verbs import usage_error
from .fit import Examples, Parameters, lightgbm_parameters, target, weights

ROWS = 20_000  # of a part


def fit_on(address: str) -> Callable[..., Any]:
    """A fit() that the workers of a scheduler do."""

    def fit_there(examples: Examples, parameters: Parameters, stop: Examples | None = None, begin_with: Any = None) -> Any:
        import dask.array
        import distributed
        import lightgbm

        if parameters.objective != "residual" or begin_with is not None or stop is not None:
            raise usage_error("--scheduler fits the objective residual, and no model that is gone on from; leave the others out")
        known = examples.usable()
        columns = [target(examples, "residual")[known], weights(examples, parameters)[known]]
        rows = (min(ROWS, max(1, int(known.sum()) // 2)),)
        y, weight = (dask.array.from_array(column, chunks=rows) for column in columns)
        x = dask.array.from_array(examples.features[known], chunks=(*rows, -1))
        options = lightgbm_parameters(parameters, "regression")
        try:
            client = distributed.Client(address, timeout=10)
        except (OSError, ValueError) as error:
            raise usage_error(f"--scheduler {address}: {error}") from None
        with client:
            model = lightgbm.DaskLGBMRegressor(client=client, n_estimators=parameters.trees, importance_type="split", **options)
            model.fit(x, y, sample_weight=weight, feature_name=examples.names, categorical_feature=examples.categorical)
            return model.booster_

    return fit_there
