"""Run the pages of docs/migrate with the libraries that this Python has, and keep what the
libraries say.

    PYTHONPATH=. PYTHON_WITH_THE_LIBRARY tests/migrate/collect.py LIBRARY ...

Runs all blocks of the page, and both calls of each row of its table, and writes
`tests/golden/migrate/<library>.json`: the versions, a digest of what was asked, and the library's
number for each of its calls. `benchmarks/peers.py install` makes an environment for each library
but obp, which pip installs on a new Python with `--ignore-requires-python`.
"""

import json
import platform
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from migrate import pages


def collect(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names, wrong = pages.run(name, ("python", "py"))
        print(wrong, end="")
        answers, largest, equal = {}, 0.0, 0
        for theirs, ours, note in pages.rows(name):
            try:
                answers[theirs] = pages.number(eval(theirs, names))
                apart = pages.distance(answers[theirs], pages.number(eval(ours, names)))
            except Exception as error:
                print(f"{name}: {theirs} | {ours}: {type(error).__name__}: {error}")
                wrong = wrong or "a row raises"
                continue
            if not pages.as_stated(apart, note):
                wrong = wrong or "a row is not what it says"
                print(
                    f"{name}: {theirs} = {answers[theirs]} | {ours}: {apart} apart; note: {note!r}"
                )
                print("   ", pages.number(eval(ours, names)))
            if note == "":
                largest, equal = max(largest, apart), equal + 1
    versions = {one: version(one) for one in (*pages.DISTRIBUTIONS[name], "numpy", "pandas")}
    versions["python"] = platform.python_version()
    print(
        f"{name} {versions}: {len(answers)} calls, {equal} equal, largest difference {largest:.1e}"
    )
    if wrong:
        return False
    kept = {"versions": versions, "digest": pages.digest(name), "answers": answers}
    (pages.GOLDEN / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return True


if __name__ == "__main__":
    went_well = [collect(name) for name in sys.argv[1:]]
    sys.exit(not all(went_well))
