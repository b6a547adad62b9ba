# SPDX-License-Identifier: MIT
"""Variables of the environment are the user's, who may have fewer rights than the program."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_environment_is_read_in_one_way():
    """By secure_getenv, which finds nothing where rights are raised."""
    plain = [f"{path.relative_to(ROOT)}:{number}" for path in sorted((ROOT / "src").rglob("*.[ch]pp"))
             for number, line in enumerate(path.read_text().splitlines(), start=1)
             if "getenv(" in line.replace("secure_getenv(", "")]
    assert plain == []
