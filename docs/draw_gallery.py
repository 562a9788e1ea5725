"""Draw the pictures of gallery.md and of README.md: python docs/draw_gallery.py

Runs the Python blocks of each page in order, and saves what a block draws under the name that the
image below it has.
"""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
# A block of Python and, if one follows it, the image below.
BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\n!\[[^]]*\]\((?:docs/)?gallery/(\w+)\.png\))?", re.S | re.M
)


def statements(block: str) -> str:
    """The lines of a doctest that are typed, without what they print."""
    return "\n".join(
        line[4:]
        for line in block.splitlines()
        if line.startswith((">>> ", "... ")) or line == "..."
    )


def main() -> None:
    (HERE / "gallery").mkdir(exist_ok=True)
    for page in (HERE / "gallery.md", HERE.parent / "README.md"):
        names: dict[str, object] = {}
        for block, picture in BLOCK.findall(page.read_text(encoding="utf-8")):
            exec(compile(statements(block), picture or page.name, "exec"), names)
            if picture:
                plt.gcf().savefig(HERE / "gallery" / f"{picture}.png", dpi=80)
            plt.close("all")


if __name__ == "__main__":
    main()
