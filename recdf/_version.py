"""The version of the package, in a module of its own so that every room can import it."""

import functools
from pathlib import Path

__version__ = "0.1.0"


@functools.cache
def version_and_build() -> str:
    """Return the version with the commit of a checkout, or the build of a package, such as
    0.1.0+g3b2edb17a6f0.

    The commit is read from the files of git, without running it. A package may hold the commit that
    it was built from in the file `_build.txt`.
    """
    package = Path(__file__).parent
    try:
        stamp = package / "_build.txt"
        commit = stamp.read_text("utf-8").strip() if stamp.is_file() else _commit(package.parent)
    except (OSError, ValueError):
        commit = ""
    known = len(commit) >= 12 and set(commit) <= set("0123456789abcdef")
    return f"{__version__}+g{commit[:12]}" if known else __version__


def _commit(checkout: Path) -> str:
    """Return the commit of a checkout; raise OSError or ValueError where there is none."""
    git = checkout / ".git"
    if git.is_file():  # a worktree names the folder of its own
        git = checkout / git.read_text("utf-8").removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text("utf-8").strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    common = git / "commondir"
    folder = git / common.read_text("utf-8").strip() if common.is_file() else git
    for place in (git / name, folder / name):
        if place.is_file():
            return place.read_text("utf-8").strip()
    packed = (folder / "packed-refs").read_text("utf-8").splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
