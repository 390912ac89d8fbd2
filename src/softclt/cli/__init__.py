"""The command line: thin commands over the library, quick to start, quiet when not watched."""

from softclt.cli.app import app, main

__all__ = ["app", "main"]
