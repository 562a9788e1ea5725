"""Draw the first screen of the report of the sample shop: python docs/draw_report.py

Needs Playwright and a Chromium of the system. Without them nothing is drawn, and the picture of the
repository stays.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import recdf as rd

HERE = Path(__file__).parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def first_screen(target: Path) -> bool:
    """Save what a reader sees first of a report of the sample shop, and return whether that was
    possible."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return False
    if browser is None:
        return False
    shop = rd.sample_shop()
    result = rd.evaluate(
        shop.true,
        shop.pred,
        ["ndcg", "recall", "coverage"],
        k=[5, 10, 20],
        by="model",
        items=shop.items,
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        path = rd.report(
            result,
            Path(folder) / "report.html",
            title="Which model for the home page?",
            baseline="popularity",
            segments=shop.users[["user_id", "segment"]],
            check=rd.check(shop.true, shop.pred, by="model"),
        )
        page = running.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport={"width": 1100, "height": 820}, color_scheme="light"
        )
        page.goto(path.as_uri())
        page.screenshot(path=target)
    return True


if __name__ == "__main__":
    done = first_screen(HERE / "gallery" / "report.png")
    sys.exit(0 if done else "draw_report: Playwright or Chromium is absent, so nothing is drawn")
