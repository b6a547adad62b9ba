# SPDX-License-Identifier: MIT
"""The common part of the Python examples: their common flags, random operands, and checks that decide how an example ends: with 0
when every result is right, with 1 when one is not.
"""
import argparse
import os
import pathlib
import sys

import ml_dtypes
import numpy as np

try:
    import tilewise
except ImportError:  # from a checkout that is built but not installed
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    import tilewise
from tilewise.dispatcher_common import default_arch, device_of

DTYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8": ml_dtypes.float8_e4m3fn,
          "bf8": ml_dtypes.float8_e5m2, "int8": np.int8}
# One unit in the last place of a result, relative to it.
ULP = {"float32": 2.0 ** -23, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "int32": 0.0}
ACCUMULATOR_ULP = 2.0 ** -23


def parser(text, dtypes=None):
    """--device and --arch, and with a list of types --dtype, whose first is the default."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--device", help="where to run: cpu, cuda:0, emulated:sm_90a (default: TILEWISE_COMPAT_DEVICE, else that "
                                       "of --arch)")
    made.add_argument("--arch", help="what to run for, such as cpu-avx2 (default: that of the device; the GPU here, else the "
                                     "CPU)")
    if dtypes:
        made.add_argument("--dtype", choices=dtypes, default=dtypes[0], help=f"element type (default: {dtypes[0]})")
    return made


def parse(made):
    """The arguments with device and arch worked out; a pair that cannot be ends the example. Runners, and the processes that
    an example starts, use the device as well."""
    arguments = made.parse_args()
    if arguments.device:
        os.environ["TILEWISE_COMPAT_DEVICE"] = arguments.device
    arguments.arch = arguments.arch or default_arch()
    device = device_of(arguments.arch)
    if arguments.device not in (None, device):
        made.error(f"kernels for {arguments.arch} run on {device}, not on {arguments.device}")
    arguments.device = device
    print(f"device {arguments.device}, arch {arguments.arch}")
    return arguments


def random(rng, shape, dtype):
    if dtype == "int8":
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.uniform(-1, 1, shape).astype(DTYPES[dtype])


def wide(x):
    return np.asarray(x).astype(np.float64)


def run(main):
    """Ends with the library's message and code where it refuses something, such as a device that is not here."""
    try:
        main()
    except tilewise.Error as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(error.code)


class Checks:
    """Every result against its reference; NaN, another shape or too large an error is a failure."""

    def __init__(self):
        self.count, self.failed = 0, 0

    def close(self, label, have, want, terms):
        """`terms`: how many products each value sums up, of operands up to 1 in size."""
        have = np.asarray(have)
        want = np.asarray(want)
        ulp = ULP[have.dtype.name]
        bound = 0.0 if ulp == 0 else ulp * np.abs(want) + 8 * ACCUMULATOR_ULP * terms + ulp
        if have.shape != want.shape:
            return self.that(label, False, f"shape {have.shape}, need {want.shape}")
        error = np.abs(wide(have) - want)
        return self.that(label, bool((error <= bound).all()), f"largest error {np.max(error, initial=0):.2e}")

    def that(self, label, ok, detail=""):
        self.count += 1
        self.failed += not ok
        print(f"  {'ok  ' if ok else 'FAIL'} {label}{'  ' + detail if detail else ''}")
        return ok

    def finish(self):
        """Ends the example."""
        if self.count == 0:
            print("nothing was checked")
            sys.exit(1)
        print(f"{self.count - self.failed} of {self.count} checks passed")
        sys.exit(1 if self.failed else 0)
