"""`python -m recdf`, the same as the command `recdf`."""

from .cli import run

if __name__ == "__main__":
    run()
