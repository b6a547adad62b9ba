# SPDX-License-Identifier: MIT
"""tilewise.gemm among other work of a program on a GPU: side streams, captured graphs, host threads, forks, and what a
repeated call costs the host. Whatever must begin in a fresh process runs in one of its own.
"""
import concurrent.futures
import os
import subprocess
import sys
import textwrap
import time

import pytest

import tilewise

torch = pytest.importorskip("torch", reason="torch is not installed")

BUSY_CYCLES = 20_000_000  # of the GPU's clock: about 10 ms, in which a kernel on another stream would overtake


def run_script(tmp_path, text, **environment):
    """Runs Python text as a program with an empty kernel cache; its output."""
    env = {**os.environ, "TILEWISE_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, env=env,
                          timeout=300, check=False)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


# ---- streams -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [False, True], ids=["plain", "deep"])
def test_in_order_with_a_side_stream(gpu, split):
    """The product waits for what makes its operand, and what uses it waits for the product."""
    m, n, k = (64, 64, 16384) if split else (512, 512, 512)
    source, b = gpu.random(m, k, dtype=torch.bfloat16), gpu.random(n, k, dtype=torch.bfloat16)
    want = source.double() @ b.double().T
    for as_argument in (False, True):
        a = torch.full_like(source, float("nan"))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(BUSY_CYCLES)
            a.copy_(source)
            c = None if as_argument else tilewise.gemm(a, b)
        if as_argument:  # from outside, by handle and by object
            c = tilewise.gemm(a, b, stream=side.cuda_stream)
            again = tilewise.gemm(a, b, stream=side)
        with torch.cuda.stream(side):
            copy = c.clone()
            a.fill_(float("nan"))  # after the product in the order of the stream
        side.synchronize()
        gpu.check(copy, want, k)
        if as_argument:
            gpu.check(again, want, k)


def test_two_streams_at_once(gpu):
    lanes = []
    for _ in range(2):
        a, b = gpu.random(192, 4096, dtype=torch.bfloat16), gpu.random(320, 4096, dtype=torch.bfloat16)
        lanes.append((torch.cuda.Stream(), a, b, []))
    torch.cuda.synchronize()
    for _ in range(20):
        for stream, a, b, results in lanes:
            with torch.cuda.stream(stream):
                results.append(tilewise.gemm(a, b))
    torch.cuda.synchronize()
    for _, a, b, results in lanes:
        want = a.double() @ b.double().T
        for c in results:
            gpu.check(c, want, 4096)


# ---- graphs --------------------------------------------------------------------------------------------------------------


def test_first_use_of_a_problem_inside_a_capture(gpu):
    """The kernel is built and loaded while torch captures, and the capture survives."""
    m, n, k = 201, 203, 205  # of no other test
    a, b = gpu.random(m, k, dtype=torch.float16), gpu.random(n, k, dtype=torch.float16)
    tilewise.gemm(a[:8, :8].contiguous(), b[:8, :8].contiguous())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = tilewise.gemm(a, b)
    for _ in range(3):
        a.copy_(gpu.random(m, k, dtype=torch.float16))
        c.fill_(float("nan"))
        graph.replay()
        gpu.check(c, a.double() @ b.double().T, k)


def test_first_use_of_the_library_inside_a_capture(tmp_path):
    run_script(tmp_path, """
        import torch, tilewise
        a, b = torch.rand(96, 128, device="cuda"), torch.rand(160, 128, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            c = tilewise.gemm(a, b)
        graph.replay()
        torch.testing.assert_close(c.double(), a.double() @ b.double().T, rtol=1e-5, atol=1e-5)
    """)


def test_measuring_inside_a_capture_takes_the_ranked_choice(gpu):
    m, n, k = 264, 280, 296  # of no other test
    problem = f"gemm:m={m},n={n},k={k},dtype=bf16,layout=rcr"
    a, b = gpu.random(m, k, dtype=torch.bfloat16), gpu.random(n, k, dtype=torch.bfloat16)
    ranked = tilewise.prepare(problem, device="cuda", strategy="rules")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = tilewise.gemm(a, b, strategy="measure")
        inside = tilewise.prepare(problem, device="cuda", strategy="measure")
    assert [note["kind"] for note in inside.plan.notes] == ["capture"] and inside.plan.source != "measured"
    if inside.plan.source == "rules":  # not a record of an earlier run
        assert inside.kernel == ranked.kernel
    graph.replay()
    gpu.check(c, a.double() @ b.double().T, k)
    after = tilewise.prepare(problem, device="cuda", strategy="measure", top=2)
    assert after.plan.source == "measured" and not after.plan.notes
    gpu.check(tilewise.gemm(a, b, strategy="measure"), a.double() @ b.double().T, k)


@pytest.mark.parametrize("m, n, k", [(192, 320, 512), (64, 64, 16384)], ids=["plain", "deep"])
def test_two_graphs_at_once(gpu, m, n, k):
    """Graphs of the same problem share the kernel and nothing else: not the operands, not the workspace."""
    steps, lanes = 20, []
    for _ in range(2):
        sources = [gpu.random(m, k, dtype=torch.bfloat16) for _ in range(steps)]
        a, b = torch.empty_like(sources[0]), gpu.random(n, k, dtype=torch.bfloat16)
        e = gpu.random(40, n, dtype=torch.bfloat16)
        tilewise.gemm(sources[0], b)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            c = tilewise.gemm(a, b)
            last = tilewise.gemm(c, e)  # reads what the kernel before it writes
        lanes.append((torch.cuda.Stream(), graph, sources, a, b, c, e, last, []))
    torch.cuda.synchronize()
    for step in range(steps):
        for stream, graph, sources, a, _, c, _, last, results in lanes:
            with torch.cuda.stream(stream):
                a.copy_(sources[step])
                graph.replay()
                results.append((c.clone(), last.clone()))
    torch.cuda.synchronize()
    for _, _, sources, _, b, _, e, _, results in lanes:
        for source, (c, last) in zip(sources, results):
            gpu.check(c, source.double() @ b.double().T, k)
            gpu.check(last, c.double() @ e.double().T, n * c.abs().max().item())


# ---- host threads and processes ------------------------------------------------------------------------------------------


def test_many_host_threads(gpu):
    shapes = [(m, n, k) for m in (16, 65) for n in (33, 128) for k in (64, 129)]
    work = [(gpu.random(m, k, dtype=torch.bfloat16), gpu.random(n, k, dtype=torch.bfloat16)) for m, n, k in shapes]
    torch.cuda.synchronize()

    def compute(number):
        stream = torch.cuda.Stream()
        results = []
        with torch.cuda.stream(stream):
            for step in range(4 * len(work)):
                index = (number + step) % len(work)
                results.append((index, tilewise.gemm(*work[index])))
        stream.synchronize()
        return results

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for results in list(pool.map(compute, range(8))):
            for index, c in results:
                a, b = work[index]
                gpu.check(c, a.double() @ b.double().T, a.shape[1])


def test_a_fork_before_the_first_use(tmp_path):
    """Parent and child each use the GPU; the parent has used the library, but not its GPU side, before."""
    run_script(tmp_path, """
        import os, torch, tilewise
        host = torch.rand(40, 50)
        tilewise.gemm(host, host.clone())

        def product_is_right():
            a, b = torch.rand(96, 128, device="cuda"), torch.rand(160, 128, device="cuda")
            return torch.allclose(tilewise.gemm(a, b).double(), a.double() @ b.double().T, rtol=1e-5, atol=1e-5)

        child = os.fork()
        if child == 0:
            os._exit(0 if product_is_right() else 1)
        assert product_is_right()
        assert os.waitpid(child, 0)[1] == 0
    """)


def test_a_fork_after_the_first_use(tmp_path):
    """CUDA does not survive a fork: the child is told so, and the parent goes on."""
    told = run_script(tmp_path, """
        import os, torch, tilewise
        a, b = torch.rand(96, 128, device="cuda"), torch.rand(160, 128, device="cuda")
        before = tilewise.gemm(a, b)
        torch.cuda.synchronize()
        child = os.fork()
        if child == 0:
            code = 0
            for use in (lambda: tilewise.gemm(a, b),
                        lambda: tilewise.prepare("gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr", device="cuda")):
                try:
                    use()
                    code = 1
                except tilewise.Error as error:
                    print(type(error).__name__, error, flush=True)
            host = torch.rand(40, 50)  # the CPU's side still works
            if not torch.allclose(tilewise.gemm(host, host.clone()), host @ host.T, rtol=1e-4, atol=1e-4):
                code = 2
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert torch.equal(tilewise.gemm(a, b), before)
    """)
    assert told.count("DeviceError") == 2 and told.count("before this process was forked") == 2, told


def test_a_fork_after_torch_alone_used_the_gpu(tmp_path):
    told = run_script(tmp_path, """
        import os, torch, tilewise
        torch.ones(1, device="cuda").sum().item()
        child = os.fork()
        if child == 0:
            try:
                tilewise.prepare("gemm:m=64,n=64,k=64,dtype=fp32,layout=rcr", device="cuda")
                os._exit(1)
            except tilewise.Error as error:
                print(type(error).__name__, error, flush=True)
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """)
    assert "DeviceError" in told and "before this process was forked" in told, told


# ---- cost ----------------------------------------------------------------------------------------------------------------


def test_host_cost_of_a_repeated_call(gpu, capsys):
    """Printed, beside torch's own; only a cost out of all proportion fails."""
    calls, rounds, most_us = 1000, 7, 100.0
    a, b = gpu.random(64, 64, dtype=torch.bfloat16), gpu.random(64, 64, dtype=torch.bfloat16)
    out, turned = torch.empty_like(a), b.T
    prepared = tilewise.prepare("gemm:m=64,n=64,k=64,dtype=bf16,layout=rcr", device="cuda")

    def cost_us(call):
        best = float("inf")
        for _ in range(rounds):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            best = min(best, time.perf_counter() - start)
        return 1e6 * best / calls

    costs = {"gemm(out=)": cost_us(lambda: tilewise.gemm(a, b, out=out)), "gemm()": cost_us(lambda: tilewise.gemm(a, b)),
             "prepared(out=)": cost_us(lambda: prepared(a, b, out=out)),
             "torch.mm(out=)": cost_us(lambda: torch.mm(a, turned, out=out)),
             "torch.mm()": cost_us(lambda: torch.mm(a, turned))}
    with capsys.disabled():
        print("\nhost us a call: " + ", ".join(f"{name} {us:.1f}" for name, us in costs.items()))
    assert costs["gemm(out=)"] < most_us
