"""Files are there whole or not at all."""

import os
from contextlib import suppress

from softclt.files import whole_file


def test_a_file_keeps_its_old_content_when_writing_fails(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with suppress(RuntimeError), whole_file(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_rights_of_any_other(tmp_path):
    with whole_file(tmp_path / "new folder" / "table.csv") as temporary:
        temporary.write_text("new")
    (tmp_path / "plain").touch()
    rights = (tmp_path / "new folder" / "table.csv").stat().st_mode
    assert rights == os.stat(tmp_path / "plain").st_mode
