"""Every example runs, as its reader would run it, and warns of nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
TRANSACTIONS = ROOT.parent / "shared/data/online_retail/transactions.parquet"

# What an example needs as arguments; a file that is absent is a reason to skip it.
ARGUMENTS = {"online_retail.py": [TRANSACTIONS]}
# Smaller inputs than a reader would take.
SIZES = {"impressions.py": ["20000"]}


def run(example, *arguments):
    command = [sys.executable, "-W", "error", ROOT / "examples" / example, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("example", EXAMPLES)
def test_runs_without_a_warning(example):
    for path in ARGUMENTS.get(example, []):
        if not path.is_file():
            pytest.skip(f"real data is absent: ../{path.relative_to(ROOT.parent).as_posix()}")
    done = run(example, *ARGUMENTS.get(example, []), *SIZES.get(example, []))
    assert (done.returncode, done.stderr) == (0, "")
    assert "ndcg" in done.stdout


def test_online_retail_says_when_there_is_no_file(tmp_path):
    done = run("online_retail.py", tmp_path / "absent.parquet")
    assert done.returncode == 2
    assert done.stderr.startswith("online_retail: no such file: ")
