"""`python -m recdf`, the same as the command `recdf`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
