"""Build the documentation of this version into a site that holds those of all versions.

    python docs/publish.py SITE --url https://example.org/recdf

writes SITE/VERSION/, SITE/stable/ (a copy of the newest version that is no pre-release),
SITE/switcher.json, from which the pages of all versions offer each other, and SITE/index.html,
which leads to stable/. Folders of other versions stay.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)((?:a|b|rc)\d+)?")


def sort_key(version):
    """Order versions by their numbers; a pre-release comes before the release."""
    *numbers, early = VERSION.fullmatch(version).groups()
    return [int(number) for number in numbers], early is None, early or ""


def versions_of(site):
    """Return the versions that a site holds, the newest first."""
    found = [path.name for path in site.iterdir() if path.is_dir() and VERSION.fullmatch(path.name)]
    return sorted(found, key=sort_key, reverse=True)


def newest_release(versions):
    """Return the version that /stable/ shows: a pre-release only where there is nothing else."""
    return next((version for version in versions if sort_key(version)[1]), versions[0])


def write_switcher(site, url):
    """Write what the pages need to offer each other, and the way to the newest one."""
    versions = versions_of(site)
    stable = newest_release(versions)
    entries = [
        {"name": f"{one} (stable)", "version": one, "url": f"{url}/stable/", "preferred": True}
        if one == stable
        else {"name": one, "version": one, "url": f"{url}/{one}/"}
        for one in versions
    ]
    (site / "switcher.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    way = '<meta http-equiv="refresh" content="0; url=stable/"><a href="stable/">recdf</a>'
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8">{way}\n', encoding="utf-8"
    )
    return stable


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="folder that holds all versions")
    parser.add_argument("--url", required=True, help="where the site will be")
    given = parser.parse_args()
    url = given.url.rstrip("/")
    version = re.search(
        r'__version__ = "(.*)"', (HERE.parent / "recdf/_version.py").read_text(encoding="utf-8")
    )[1]
    target = given.site / version
    given.site.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    # conf.py shows the switcher where it knows the address of the site.
    environment = os.environ | {"RECDF_DOCS_URL": url}
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", HERE, target], check=True, env=environment
    )
    shutil.rmtree(target / ".doctrees", ignore_errors=True)
    if write_switcher(given.site, url) == version:
        shutil.rmtree(given.site / "stable", ignore_errors=True)
        shutil.copytree(target, given.site / "stable")
    print(f"{given.site} holds {', '.join(versions_of(given.site))}")


if __name__ == "__main__":
    main()
