# SPDX-License-Identifier: MIT
"""Every link of the documentation leads to a file that is there, and to a heading that it has."""
import pathlib
import re
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)


def pages():
    return [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(text):
    """The names that headings get, as GitHub and MkDocs make them."""
    names = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        names.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return names


def faults(page, text):
    """The faults of a page's links. Links to other hosts are not followed."""
    for target in LINK.findall(CODE.sub("", text)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
        if not file.exists():
            yield f"{target}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()])
def test_links(page):
    assert list(faults(page, page.read_text(encoding="utf-8"))) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One heading\n", encoding="utf-8")
    text = "[a](nowhere.md) [b](#one-heading) [c](page.md#two) [d](https://example.com) `[e](code.md)`"
    assert list(faults(page, text)) == ["nowhere.md: no such file", "page.md#two: no such heading"]
