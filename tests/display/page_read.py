"""A page of a report as a test reads it, and the tables that it is made of."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """Sections, tables as lists of texts, and every tag and attribute of a page."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tags, self.attributes, self.sections, self.tables, self.open = set(), [], {}, {}, []
        self.section, self.row, self.cell = None, None, None
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = dict(attrs)["id"]
            self.sections[self.section] = []
        elif tag == "table":
            self.tables.setdefault(self.section, []).append([])
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th") and self.row is not None:
            self.cell = []

    def handle_endtag(self, tag):
        if tag in self.open:
            assert self.open.pop() == tag, f"</{tag}> closes another tag"
        if tag == "tr":
            self.tables[self.section][-1].append(self.row)
            self.row = None
        elif tag in ("td", "th") and self.cell is not None:
            self.row.append(" ".join("".join(self.cell).split()))
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell.append(data)
        if self.section is not None and self.open and self.open[-1] not in ("style", "script"):
            self.sections[self.section].append(data)

    def text(self, section):
        return " ".join(" ".join(self.sections[section]).split())


def off_policy():
    """Three estimates, the first two flagged."""
    return pd.DataFrame(
        {
            "policy": ["new"] * 3,
            "estimator": ["ips", "snips", "dr"],
            "clip": [np.nan, np.nan, 10.0],
            "value": [0.021, 0.019, 0.02],
            "ci_low": [0.01, 0.012, 0.015],
            "ci_high": [0.033, 0.027, 0.025],
            "lift": [0.004, 0.003, 0.0041],
            "lift_ci_low": [0.001, -0.004, 0.001],
            "lift_ci_high": [0.014, 0.01, 0.007],
            "ess": [250.0, 250.0, 2500.0],
            "flags": ["few_rewards, low_ess", "low_ess", ""],
        }
    )
