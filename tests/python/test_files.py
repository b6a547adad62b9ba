# SPDX-License-Identifier: MIT
"""Files that commands write appear whole, in place of plain files alone."""
import os

import pytest

import tilewise
from tilewise import _files


def test_a_new_file_takes_the_place_of_another_at_the_end(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with _files.new_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(ValueError), _files.new_file(path) as part:
        part.write_text("half")
        raise ValueError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_the_mode_is_what_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        with _files.new_file(tmp_path / "x"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_links_and_folders_are_not_replaced(tmp_path):
    (tmp_path / "target").write_text("somebody's")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for place in (tmp_path / "link", tmp_path):
        with pytest.raises(tilewise.UsageError, match="no plain file"), _files.new_file(place):
            pass
    assert (tmp_path / "target").read_text() == "somebody's"


@pytest.mark.parametrize("text, whole", [("", ""), ("a", ""), ("a\n", "a\n"), ("a\nb", "a\n"), ('a\n"b\nc\n', "a\n"), ('a\n"b\n"\nc', 'a\n"b\n"\n'),
                                         ('"', ""), ('"\n\n\n', "")])
def test_whole_records_end(text, whole):
    assert _files.whole_records(text) == whole
