"""An index once more in another folder, where it takes the place of what was there."""

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from softclt.search.description import Description, is_part


def new_name(kind: str) -> str:
    """A name that no part of an index has yet."""
    return f"{kind}-{secrets.token_hex(6)}"


def copied(index: Description, source: Path, target: Path) -> Description:
    """Put an index into another folder, at the moment at which its description is there.

    What another index, or a process that was killed, has left in the folder is taken away.
    """
    moved = index
    if index.rows:
        moved = replace(moved, rows=new_name("rows"))
        _copy(source / f"{index.rows}.lance", target / f"{moved.rows}.lance")
    if "folder" in index.model:
        moved = replace(moved, model={**index.model, "folder": new_name("model")})
        _copy(source / index.model["folder"], target / moved.model["folder"])
    moved.write(target)
    for path in target.iterdir():
        if is_part(path.name) and path.name not in moved.parts():
            shutil.rmtree(path, ignore_errors=True)
    return moved


def _copy(source: Path, target: Path) -> None:
    """A folder once more; rows and weights are never changed, so that links to them will do."""

    def copy(one: str, other: str) -> None:
        if "_versions" not in Path(one).parts:  # which LanceDB writes over
            with suppress(OSError):  # on another disk
                os.link(one, other)
                return
        shutil.copyfile(one, other)

    shutil.copytree(source, target, copy_function=copy)
