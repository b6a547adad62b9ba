# SPDX-License-Identifier: MIT
"""The programs of docs/torch.md and docs/torch-compile.md run, each on its own."""
import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PROGRAMS = [(page, program) for page in ("torch.md", "torch-compile.md") for program in
            re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)]


def test_programs_are_found():
    assert len(PROGRAMS) >= 5


@pytest.mark.parametrize("page, program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_program(page, program):
    exec(compile(program, page, "exec"), {})
