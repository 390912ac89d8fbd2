"""How a command ends: one clear line and the right exit code, a traceback only on request."""

import dis
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperGroup

from softclt.cli.heartbeat import never_silent
from softclt.cli.output import begin_notes, doing, end_notes, tell
from softclt.plaintext import visible

DEBUG_VARIABLE = "SOFTCLT_DEBUG"

# What a user can put right: files and packages that are missing. Values and types, too, but these
# are also what a mistake in our own code ends with: they count where the library raised them.
_WRONG_USE = (
    ImportError,
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)

# Packages whose messages are for the user: sklearn's are on parameters and models not fitted.
_SPEAKERS = ("softclt", "sklearn")

# What is nobody's fault and says all there is to say: a full disk, a loss that is no number, too
# little memory; where the library raised it, also a worker that died.
_FAILED = (OSError, FloatingPointError, MemoryError)


_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


def command_line() -> str:
    """The command that is being run, as one types it."""
    return shlex.join(["softclt", *_typed.get()])


class Commands(TyperGroup):
    """A group of commands that ends with exit code 0, 2 (wrong use), 1 (failed) or 130 (Ctrl-C)."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; an error becomes one line on stderr."""
        _typed.set(tuple(sys.argv[1:] if args is None else args))
        begin_notes()
        with _one_process_speaks(), never_silent(doing), _messages_on_stderr():
            try:
                code = super().main(
                    args, prog_name, complete_var, False, windows_expand_args, **extra
                )
                end_notes()
            except (KeyboardInterrupt, typer.Abort):
                end_notes()
                code = 130
            except Exception as error:
                if os.environ.get(DEBUG_VARIABLE, "0") not in ("", "0"):
                    raise
                end_notes(drop=True)
                tell(_one_line(error))
                code = _exit_code(error)
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def show_tracebacks() -> None:
    """Let errors through for the rest of this process, and for its workers."""
    os.environ[DEBUG_VARIABLE] = "1"


def _exit_code(error: Exception) -> int:
    if hasattr(error, "format_message"):  # typer's own: an option or a command that is wrong
        return int(getattr(error, "exit_code", 2))
    return 2 if _is_wrong_use(error) else 1


def _is_wrong_use(error: Exception) -> bool:
    if isinstance(error, (ValueError, TypeError)):
        return _was_meant(error)
    return isinstance(error, _WRONG_USE)


def _was_meant(error: Exception) -> bool:
    """Whether a ``raise`` of this library, or of scikit-learn's checks, made the error."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    raised = dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    room = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    return raised and room in _SPEAKERS


def _one_line(error: Exception) -> str:
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "softclt"
        text = f"{error.format_message()} Try '{where} --help'."
    elif isinstance(error, FileNotFoundError) and error.filename is not None:
        text = f"no such file or folder: {error.filename}"
    elif (
        _is_wrong_use(error)
        or isinstance(error, _FAILED)
        or (isinstance(error, RuntimeError) and _was_meant(error))
    ):
        text = str(error) or type(error).__name__
    else:
        text = (
            f"failed with {type(error).__name__}: {error}. This is a mistake in softclt: please "
            "report it with what 'softclt --debug ...' shows"
        )
    subject = "".join(f"{name}: " for name in getattr(error, "__notes__", ()) if name not in text)
    return " ".join(f"{subject}{text}".split())


@contextmanager
def about(name: object) -> Iterator[None]:
    """Errors in it are about a file: their line names it, if the message does not."""
    try:
        yield
    except Exception as error:
        error.add_note(str(name))
        raise


@contextmanager
def _one_process_speaks() -> Iterator[None]:
    """Of the processes that torchrun has started, the first speaks; for errors, one a machine."""
    rank, on_this_machine = (int(os.environ.get(name, "0")) for name in ("RANK", "LOCAL_RANK"))
    with open(os.devnull, "w") as nowhere, ExitStack() as silenced:
        if rank > 0:
            silenced.enter_context(redirect_stdout(nowhere))
        if on_this_machine > 0:
            silenced.enter_context(redirect_stderr(nowhere))
        yield


class _Visible(logging.Formatter):
    """Log messages in which nothing is a command to the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


@contextmanager
def _messages_on_stderr() -> Iterator[None]:
    """Log messages and warnings as single lines on stderr, while a command runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Visible("softclt: %(message)s"))
    logger = logging.getLogger("softclt")
    logger.addHandler(handler)

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        logger.warning(" ".join(str(message).split()))

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)
