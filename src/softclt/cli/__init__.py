"""The command line: thin commands over the library, quick to start, quiet when not watched."""

from softclt.cli.app import app as app
from softclt.cli.app import main as main
