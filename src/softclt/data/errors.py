"""The one error of this room: which file, where in it, what came and what to do."""

from os import PathLike


class DataError(ValueError):
    """A file or a name that cannot be read as series.

    The message reads ``FILE, line L: what came; what was expected; what to do``.

    Args:
        message: What came, what was expected and what to do, in one line.
        path: The file, as the user named it.
        at: The place in the file: a line number, or words such as ``"row 3"``.

    Example:
        >>> raise DataError("'abc' is no number; write ? for a missing value", "a.ts", 7)
        Traceback (most recent call last):
        ...
        softclt.data.errors.DataError: a.ts, line 7: 'abc' is no number; write ? for a missing value
    """

    def __init__(
        self, message: str, path: str | PathLike[str] | None = None, at: int | str | None = None
    ) -> None:
        place = [] if path is None else [str(path)]
        if at is not None:
            place.append(f"line {at}" if isinstance(at, int) else at)
        super().__init__(f"{', '.join(place)}: {message}" if place else message)


class UnknownDataError(DataError):
    """A name that stands for no data set here, and for no file."""


def shorten(text: object, limit: int = 40) -> str:
    """A quoted value for a message, cut where it would flood the line."""
    shown = repr(text)
    return shown if len(shown) <= limit else f"{shown[: limit - 4]}...{shown[0]}"
