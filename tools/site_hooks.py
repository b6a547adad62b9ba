# SPDX-License-Identifier: MIT
"""Hooks of MkDocs: pages of the project that lie beside docs/ (HACKING, CONTRIBUTING, CHANGELOG) become pages of the site, the notes get an
index, and links to files that are no pages become their paths."""
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
BESIDE = ("HACKING.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def notes_index():
    lines = ["# Notes", "", "What was measured and tried, by day. Figures of a note are those of its day.", ""]
    for path in sorted((ROOT / "docs" / "notes").glob("*.md"), reverse=True):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- {path.name[:10]}: [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def on_files(files, config):
    for name in BESIDE:
        files.append(File.generated(config, f"project/{name}", content=(ROOT / name).read_text(encoding="utf-8")))
    files.append(File.generated(config, "notes/index.md", content=notes_index()))
    return files


def on_page_markdown(markdown, page, config, files):
    here = page.file.src_uri
    folder = "" if here.startswith("project/") else posixpath.join("docs", posixpath.dirname(here))

    def lead(found):
        mark, text, target = found.groups()
        path, hash_sign, anchor = target.partition("#")
        if not path or re.match(r"\w+:", target):
            return found[0]
        place = posixpath.normpath(posixpath.join(folder, path))
        if place in BESIDE:
            place = f"docs/project/{place}"
        uri = place.removeprefix("docs/")
        if place.startswith("docs/") and files.get_file_from_path(uri):
            relative = posixpath.relpath(uri, posixpath.dirname(here) or ".")
            return f"{mark}[{text}]({relative}{hash_sign}{anchor})"
        return text if text.startswith("`") or place in text else f"{text} (`{place}`)"

    return LINK.sub(lead, markdown)
