# SPDX-License-Identifier: MIT
"""A child process that answers lines of JSON, and may die or hang over any of them. Knows nothing of GPUs.

The child says {"ready": true} when it may be asked, and answers each request with {"answer": ..., "last": false}; after
a last one it ends. ask() returns the answer or raises ChildDied with the reason; start() then gives a fresh process.
"""
import json
import select
import signal
import subprocess

SECONDS_TO_END = 20


class ChildDied(Exception):
    """The child ended, or was ended because it took too long."""


def reason_of(code: int) -> str:
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with {code}"


class Child:
    def __init__(self, command: list[str]):
        self._command = command
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, seconds: float) -> None:
        """Starts the process where none is running, and waits until it is ready."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            self.stop()  # it ended between two requests
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read(self._process, seconds)

    def ask(self, request: dict, seconds: float) -> dict:
        process = self._process
        if process is None:
            raise ChildDied("the process was not started")
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise ChildDied(self.stop()) from None
        reply = self._read(process, seconds)
        if reply["last"]:
            self.stop()
        return reply["answer"]

    def _read(self, process: subprocess.Popen, seconds: float) -> dict:
        # One reply at a time, read to its end, so that nothing waits unseen in the reader's own buffer.
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        if not ready:
            self.stop(kill=True)
            raise ChildDied(f"no answer within {seconds:g} s")
        line = process.stdout.readline()
        if not line.endswith("\n"):
            raise ChildDied(self.stop())
        return json.loads(line)

    def stop(self, kill: bool = False) -> str:
        """Ends the process and says how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "the process was not started"
        if kill:
            process.kill()
        try:
            process.stdin.close()  # no more requests: it ends by itself
        except BrokenPipeError:
            pass
        try:
            code = process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        process.stdout.close()
        return reason_of(code)
