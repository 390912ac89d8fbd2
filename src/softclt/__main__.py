"""``python -m softclt`` is the command line."""

from softclt.cli import main

if __name__ == "__main__":
    main()
