"""What an index is, as its folder says it: one small JSON file, which is also the switch."""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from softclt import schema
from softclt.files import whole_file
from softclt.persistence import utc_now, versions
from softclt.schema import SIZE, TABLE, TEXT

DESCRIPTION = "index.json"
FORMAT = 1

_LONGEST = 2**20  # bytes
_TABLE = re.compile(r"rows-[0-9a-f]{12}")
_MODEL = re.compile(r"model-[0-9a-f]{12}")


class IndexFileError(ValueError):
    """A folder that is not, or no longer, an index of softclt."""


@dataclass(frozen=True)
class Description:
    """All of an index but its rows and its model.

    Attributes:
        model: Which model it belongs to: see `softclt.search.models`.
        window: Steps of a row; None where a row is a whole series.
        stride: Steps from row to row.
        keep_series: Whether rows have their values.
        rows: Name of the table; None before the first row.
        n_channels: D of the series; None before the first row.
        ann: How the rows are searched where they are many: see `softclt.search.store`.
        made: When the description was written.
        versions: By which packages.
    """

    model: dict[str, Any]
    window: int | None = None
    stride: int | None = None
    keep_series: bool = True
    rows: str | None = None
    n_channels: int | None = None
    ann: dict[str, Any] = field(default_factory=lambda: {"kind": "exact"})
    made: str = field(default_factory=utc_now)
    versions: dict[str, str] = field(default_factory=versions)

    def write(self, folder: Path) -> None:
        """Write it; from that moment on a reader finds this index, and before the other one."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1, allow_nan=False) + "\n"
        with whole_file(folder / DESCRIPTION, durable=True) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def parts(self) -> set[str]:
        """Names of the folders that belong to it."""
        rows = {f"{self.rows}.lance"} if self.rows else set()
        return rows | ({self.model["folder"]} if "folder" in self.model else set())


_KINDS = {
    "model": TABLE,
    "window": schema.optional(SIZE),
    "stride": schema.optional(SIZE),
    "keep_series": schema.FLAG,
    "rows": schema.optional(schema.Kind("the name of a table", lambda v: _fits(_TABLE, v))),
    "n_channels": schema.optional(SIZE),
    "ann": TABLE,
    "made": TEXT,
    "versions": TABLE,
}
_OF_MODEL = {
    "sha256": schema.DIGEST,
    "name": TEXT,
    "folder": schema.Kind("the name of a folder", lambda v: _fits(_MODEL, v)),
    "settings_sha256": schema.DIGEST,
}


def read_description(folder: str | os.PathLike[str]) -> Description:
    """What `Description.write` wrote; or an error that says what is wrong with the folder."""
    path = Path(folder) / DESCRIPTION
    if not path.is_file():
        raise IndexFileError(
            f"{folder} is not an index: {DESCRIPTION} is missing; 'softclt index' makes one"
        )
    if path.stat().st_size > _LONGEST:
        raise IndexFileError(f"{path} is longer than any description of an index")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict) or config.get("format") != FORMAT:
            raise IndexFileError(
                f"{path} does not describe an index of format {FORMAT}; use the version of softclt "
                "that wrote it"
            )
        schema.check_entries(config, _KINDS)
        by = {"sha256", "name"} if "name" in config["model"] else {"sha256", "folder"}
        schema.check_entries(config["model"], {name: _OF_MODEL[name] for name in by}, "model.")
    except IndexFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise IndexFileError(f"{path} is damaged ({error}); make the index again") from None
    return Description(**{name: config[name] for name in _KINDS})


def is_part(name: str) -> bool:
    """Whether a folder has such a name as the rows or the model of some index have."""
    return _fits(_TABLE, name.removesuffix(".lance")) or _fits(_MODEL, name)


def _fits(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
