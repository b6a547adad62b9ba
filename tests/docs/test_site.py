# SPDX-License-Identifier: MIT
"""The site: generated pages are current, and the navigation has every page."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_generated_references_are_current():
    done = subprocess.run([sys.executable, ROOT / "tools/command_reference", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_navigation_has_every_page():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"(\S+\.md)$", nav, flags=re.M)
    made = {"notes/index.md", "project/HACKING.md", "project/CHANGELOG.md", "project/CONTRIBUTING.md"}  # tools/site_hooks.py
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) - made == {page for page in pages if not page.startswith("notes/")}
