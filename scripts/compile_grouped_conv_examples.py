#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the C++ examples of grouped convolution, or other programs, against the library of a build, under the name of the
original's script. Kernels need no compiling here: a program builds those that it uses, once.

    scripts/compile_grouped_conv_examples.py                                   all of examples/grouped_conv/cpp
    scripts/compile_grouped_conv_examples.py FILE.cpp --run --device emulated:sm_90a
"""
import argparse
import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT_S = 600


def compile_one(source, args):
    """(program, "") or (None, the compiler's command and what it said)."""
    program = args.output_dir / source.stem
    command = [*shlex.split(os.environ.get("CXX", "c++")), "-std=c++20", "-O1", f"-I{ROOT / 'include'}",
               f"-I{ROOT / 'examples' / 'common'}", str(source), "-o", str(program), f"-L{args.build_dir / 'lib'}",
               "-ltilewise", f"-Wl,-rpath,{args.build_dir / 'lib'}", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if args.verbose:
        print(shlex.join(command))
    return (program, "") if done.returncode == 0 else (None, f"{shlex.join(command)}\n{done.stdout}{done.stderr}")


def run_one(program, args):
    """Whether the program found all its results right."""
    command = [str(program), *(["--device", args.device] if args.device else []), *(["--arch", args.arch] if args.arch else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    print(f"{'ok  ' if done.returncode == 0 else 'FAIL'} {shlex.join(command)}")
    if done.returncode != 0 or args.verbose:
        print(done.stdout + done.stderr)
    return done.returncode == 0


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("sources", nargs="*", type=pathlib.Path, help="programs (default: examples/grouped_conv/cpp/*.cpp)")
    flags.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build", help="where the library is (default: build)")
    flags.add_argument("--output-dir", type=pathlib.Path, help="where programs go (default: BUILD/compiled_examples)")
    flags.add_argument("--jobs", "-j", type=int, default=os.cpu_count(), help="compilers at a time (default: one for each CPU)")
    flags.add_argument("--run", action="store_true", help="run the programs, too")
    flags.add_argument("--device", help="where they run: cpu, cuda:0, emulated:sm_90a")
    flags.add_argument("--arch", help="what they run for, such as cpu-avx2")
    flags.add_argument("--verbose", "-v", action="store_true", help="print commands and what programs print")
    args = flags.parse_args()
    args.output_dir = args.output_dir or args.build_dir / "compiled_examples"
    if not (args.build_dir / "lib" / "libtilewise.so").exists():
        flags.error(f"{args.build_dir}/lib/libtilewise.so is not there; run make build, or name a build with --build-dir")
    sources = args.sources or sorted((ROOT / "examples" / "grouped_conv" / "cpp").glob("*.cpp"))
    missing = [str(source) for source in sources if not source.is_file()]
    if missing:
        flags.error(f"no such file: {', '.join(missing)}")
    args.output_dir.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda source: compile_one(source, args), sources))
    for source, (program, why) in zip(sources, results):
        print(f"{'compiled' if program else 'FAIL    '} {source.name}{'' if program else chr(10) + why}")
    right = [program is not None and (not args.run or run_one(program, args)) for program, _ in results]
    print(f"{sum(right)} of {len(right)} programs {'ran' if args.run else 'compiled'}")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
