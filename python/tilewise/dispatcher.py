# SPDX-License-Identifier: MIT
"""tilewise.Dispatcher: selects, prepares, runs and times problems on one device, from kernels and by a ranking of the
caller's choice. The device is opened by the first call that needs it.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _library, _structs
from ._answers import Bench, Plan, Validation, from_json, plan_from
from ._devices import device_name
from ._prepared import Prepared
from ._runtime import AnyKernel, bench_from, kernel_text, measuring, opening, select_options
from .problem import Problem, problem_text
from .registry import Registry

# Gets the problem's text, the candidates' names and the times the model predicts for them; returns those it wants, best
# first, as names or as places in that list.
Ranking = Callable[[str, "list[str]", "list[float | None]"], Sequence[Any]]


class Dispatcher:
    """Chooses and runs kernels on a device ("cpu", "cuda:0", "hip:0"; None: on none, for `arch`, so that it can only select).

    registry  choose from these kernels alone;  rule_set: from another set than the default one
    rank      choose by this function: rank(problem, names, predicted_us) -> names or places, best first
    strategy  auto, rules, first-fit, measure or model
    threads   of the CPU; 0: all that this process may use
    """

    def __init__(self, device: Any = "cpu", *, arch: str | None = None, registry: Registry | None = None,
                 rank: Ranking | None = None, strategy: str | None = None, rule_set: str | None = None,
                 threads: int = 0, packs: Sequence[str] = ()):
        if isinstance(packs, (str, os.PathLike)):
            raise TypeError(f"packs: expected a list of files, got one; put it into a list: [{str(packs)!r}]")
        try:
            self.packs = [os.fspath(pack) for pack in packs]
        except TypeError:
            raise TypeError(f"packs: expected a list of files, got {packs!r}") from None
        self.device = None if device is None else device_name(device)
        self.arch, self.registry, self.rank = arch, registry, rank
        self.strategy, self.rule_set, self.threads = strategy, rule_set, threads
        self._context = self._pid = 0

    def __del__(self, getpid: Any = os.getpid, destroy: Any = _library.function("tilewise_context_destroy")) -> None:
        if getattr(self, "_context", 0) and self._pid == getpid():  # a child leaves the parent's device alone
            destroy(self._context)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, which open the device themselves."""
        return {**self.__dict__, "_context": 0, "_pid": 0}

    def __repr__(self) -> str:
        parts = [repr(self.device)]
        parts += [f"{name}={getattr(self, name)!r}" for name in ("arch", "registry", "rank", "strategy", "rule_set")
                  if getattr(self, name) is not None]
        return f"Dispatcher({', '.join(parts)})"

    def _open(self) -> int:
        if self.device is None:
            raise ValueError("a dispatcher without a device can only select; give one, such as Dispatcher('cpu')")
        if self._pid != os.getpid():
            with opening():
                if self._pid != os.getpid():
                    arch = None if self.arch is None else _library.encode(self.arch)
                    options = _structs.ContextOptions(ctypes.sizeof(_structs.ContextOptions), arch, None, _library.whole(self.threads, "threads"))
                    opened = _library.create("tilewise_context_create", self.device, ctypes.byref(options))
                    try:
                        for pack in self.packs:
                            _library.check("tilewise_load_pack", opened, pack)
                    except Exception:
                        _library.function("tilewise_context_destroy")(opened)
                        raise
                    self._context = opened
                    self._pid = os.getpid()
        return self._context

    def _choose(self, function: Callable[[Any], Any], kernel: Any = None, strategy: str | None = None,
                top: int | None = None) -> Any:
        """Calls function(options); what the ranking raises in it is raised here."""
        options = select_options(strategy or self.strategy, self.rule_set, kernel_text(kernel), top)
        if self.registry is not None:
            options.registry = self.registry._handle
        failed: list[BaseException] = []
        if self.rank is not None:
            options.rank = _callback(self.rank, failed)
        if self.device is None and self.arch is not None:
            options.arch = _library.encode(self.arch)
        try:
            if options.strategy == b"measure":
                with measuring():
                    return function(options)
            return function(options)
        except _library.TilewiseError:
            if failed:
                raise failed[0] from None
            raise

    def select(self, problem: str | Problem, *, strategy: str | None = None) -> Plan:
        """Returns the plan for a problem. If no kernel may run it, the plan is false and says why."""
        text = problem_text(problem)
        context = self._open() if self.device is not None else None

        def choose(options: Any) -> Plan:
            plan = _library.create("tilewise_plan_create", context, text, ctypes.byref(options))
            try:
                return plan_from(_library.call("tilewise_plan_describe", plan))
            finally:
                _library.function("tilewise_plan_destroy")(plan)

        chosen: Plan = self._choose(choose, None, strategy)
        return chosen

    def prepare(self, problem: str | Problem, *, kernel: AnyKernel = None,
                strategy: str | None = None, top: int | None = None) -> Prepared:
        """Chooses, builds and loads the kernel of a problem. Call the result with the operands."""
        text, context = problem_text(problem), self._open()
        assert self.device is not None
        device = self.device
        made: Prepared = self._choose(lambda options: Prepared(text, device, options, context), kernel, strategy, top)
        return made

    def run(self, problem: str | Problem, a: Any, b: Any, **operands: Any) -> Any:
        """Prepares the problem unless it is prepared, and runs it once. The operands are those of a Prepared."""
        return self.prepare(problem)(a, b, **operands)

    def run_host(self, problem: str | Problem, a: Any, b: Any, *, kernel: AnyKernel = None) -> Any:
        """Does the same with NumPy arrays for any device. It rounds them to the problem's types, copies them to the device,
        and copies the result back."""
        return self.time_host(problem, a, b, kernel=kernel, warmup=0, repeat=1)[0]

    def time_host(self, problem: str | Problem, a: Any, b: Any, *, kernel: AnyKernel = None, warmup: int = 1,
                  repeat: int = 3) -> tuple[Any, float]:
        """Returns run_host's result and the milliseconds of one launch: the mean of `repeat` launches after `warmup`, without copies.
        bench() measures with more care, on tensors of its own."""
        from ._host_run import run_host  # needs NumPy, which nothing else here does
        for count, name in ((warmup, "warmup"), (repeat, "repeat")):
            if _library.whole(count, name) < 0:
                raise ValueError(f"{name}: {count}; need 0 or more")
        return run_host(self.prepare(problem, kernel=kernel), self._open(), a, b, warmup, max(repeat, 1))

    def bench(self, problem: str | Problem, *, all: bool = False, kernel: Any = None) -> Bench:
        """Times the chosen kernel. With all=True it times every kernel that may run the problem."""
        text, context = problem_text(problem), self._open()
        with measuring():
            return bench_from(self._choose(lambda options: _library.call("tilewise_bench", context, text,
                                                                         ctypes.byref(options), int(all)), kernel))

    def validate(self, problem: str | Problem, *, kernel: Any = None) -> Validation:
        """Runs the kernel once on random tensors and judges every element of the result."""
        text, context = problem_text(problem), self._open()
        answer = self._choose(lambda options: _library.call("tilewise_validate", context, text, ctypes.byref(options)),
                              kernel)
        judged: Validation = from_json(Validation, answer)
        return judged

    def load_pack(self, path: Any) -> None:
        """Adds a pack of built kernels (tilewise build --pack) for problems that are prepared from now on."""
        _library.check("tilewise_load_pack", self._open(), os.fspath(path))

    def load_tuning(self, path: Any) -> int:
        """Adds the tuning records of a file and returns their number."""
        added = ctypes.c_int64()
        _library.check("tilewise_load_tuning", self._open(), os.fspath(path), ctypes.byref(added))
        return added.value

    def describe(self) -> dict[str, Any]:
        """Returns the device that was opened: its name, arch, backend, threads, ..."""
        facts: dict[str, Any] = _library.call("tilewise_context_describe", self._open())
        return facts


def _places(ranked: Any, names: list[str]) -> list[int]:
    """The places in the list of candidates that a ranking returned."""
    try:
        items = list(ranked)
    except TypeError:
        raise TypeError(f"rank: it returned a {type(ranked).__name__}; need a list of names or places, best first") from None
    strange = next((item for item in items if isinstance(item, str) and item not in names), None)
    if strange is not None:
        raise ValueError(f"rank: {strange!r} is none of the {len(names)} candidates")
    places = [names.index(item) if isinstance(item, str) else _library.whole(item, "rank") for item in items]
    beyond = next((place for place in places if not 0 <= place < len(names)), None)
    if beyond is not None:
        raise ValueError(f"rank: {beyond} is no place in the list of candidates; need 0 to {len(names) - 1}")
    return places


def _callback(rank: Ranking, failed: list[BaseException]) -> Any:
    def call(_: Any, problem: bytes, names: Any, predicted: Any, count: int, order: Any) -> int:
        try:
            texts = [names[i].decode() for i in range(count)]
            times = [predicted[i] if predicted[i] >= 0 else None for i in range(count)]
            places = _places(rank(problem.decode(), texts, times), texts)
            for i, place in enumerate(places[:count]):
                order[i] = place
            return min(len(places), count)
        except BaseException as error:  # C cannot carry it; the caller raises it
            failed.append(error)
            return 0

    return _structs.Rank(call)
