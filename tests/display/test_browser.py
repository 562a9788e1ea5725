"""The report in a real browser: no request, no error, keyboard, hostile names, widths, print,
accessibility.

Needs Playwright (`pip install recdf[browser]`) and a Chromium of the system; skipped with a clear
word where either is missing. The check of accessibility needs axe-core too: the environment
variable RECDF_AXE names its `axe.min.js`.
"""

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recdf as rd

from .conftest import HOSTILE
from .test_picture_matrix import models, tables

WITHOUT = "Playwright is not installed: pip install recdf[browser]"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
AXE = Path(os.environ.get("RECDF_AXE", "axe.min.js"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium"
    ),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason=WITHOUT)
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Visit:
    """A page that was opened from disk, and what went wrong or out on the way."""

    def __init__(self, browser, path, width=1280, scheme="light", script=True, folded=False):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        self.page = self.context.new_page()
        self.errors, self.requests, self.stopped = [], [], []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.errors.append("a dialog opened"), dialog.dismiss())
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "requestfailed", lambda request: self.stopped.append((request.url, request.failure))
        )
        self.page.goto(path.as_uri())
        if script and not folded:  # what a phone folds is held to the same as on a desk
            self.page.evaluate(
                "() => document.querySelectorAll('.fold').forEach((one) => { one.open = true; })"
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def wide(self):
        """How many pixels the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    def column(self, section, place):
        """Texts of one column of the first table of a section."""
        cells = f"#{section} table >> nth=0 >> tbody tr > :nth-child({place})"
        return [" ".join(text.split()) for text in self.page.locator(cells).all_inner_texts()]


@pytest.fixture(scope="module")
def path(shop, result, exposed, tmp_path_factory):
    users = shop.users[["user_id", "segment", "channel"]]
    findings = rd.check(shop.true, shop.pred, by="model", items=shop.items, log=shop.log)
    options = {"users": "pred", "undefined": "zero", "value_col": "value"}
    shown = rd.evaluate(shop.true, shop.shown, "revenue@10", **options)
    assigned = shown.join_experiment(shop.assignment, missing="zero")
    return rd.report(
        result,
        tmp_path_factory.mktemp("browser") / "report.html",
        baseline="popularity",
        check=findings,
        segments=users,
        exposure=exposed,
        log=shop.log,
        experiment=rd.compare_variants(assigned, "revenue@10", control="A"),
        health=rd.experiments.experiment_health(shown.per_user, shop.assignment),
        position=rd.diagnostics.position_table(shop.true, shop.pred, k=5, by="model"),
    )


@pytest.fixture(scope="module")
def kinds(shop, tmp_path_factory):
    """A page of each kind beside that of models, by its name."""
    folder, rng, n = tmp_path_factory.mktemp("kinds"), np.random.default_rng(0), 600
    users = pd.DataFrame(
        {
            "user_id": range(n),
            "variant": np.where(rng.random(n) < 0.5, "A", "B"),
            "browser": rng.choice(["x", "y"], n),
            "ndcg": rng.normal(0.2, 0.1, n),
        }
    )
    teams = pd.DataFrame({"user_id": np.repeat(range(50), 4), "item_id": np.tile(range(4), 50)})
    teams["team"] = np.tile(["a", "b"], 100)
    result = rd.evaluate(shop.true, shop.pred, ["ndcg", "recall"], k=10, by="model")
    for day in pd.date_range("2026-11-01", periods=3):
        result.to_parquet(folder / "job" / f"{day:%Y-%m-%d}")
    effect = rd.compare_variants(users, "ndcg", control="A")
    tables = {
        "experiment": {"all": effect, "ratio": rd.experiments.find_srm(users, "browser")},
        "plan": rd.experiments.plan_experiment(users, "ndcg", rel_effect=0.02),
        "interleaving": rd.experiments.compare_interleaved(teams, teams[::3].drop(columns="team")),
    }
    asked = {name: {"experiment": table} for name, table in tables.items()}
    asked["history"] = {"history": rd.diagnostics.History(folder / "job")}
    asked["no coverage"] = {"result": result}
    return {
        name: rd.report(path=folder / f"{name}.html", **options) for name, options in asked.items()
    }


@pytest.fixture(scope="module")
def many_path(tmp_path_factory):
    names = models(12, "long")
    true, pred, items, result = tables(names)
    target = tmp_path_factory.mktemp("many") / "report.html"
    exposed = rd.diagnostics.exposure_table(pred, by="model", items=items)
    return rd.report(result, target, baseline=names[0], exposure=exposed, log=true)


@pytest.fixture(scope="module")
def hostile_path(hostile, tmp_path_factory):
    bad = HOSTILE[1]
    findings = pd.DataFrame(
        {
            "finding": [bad],
            "severity": ["error"],
            "count": [1],
            "share": [0.5],
            "effect": [bad],
            "code": [bad],
        }
    )
    shown = pd.DataFrame({"model": HOSTILE, "item_id": HOSTILE, "shown": 3, "share": 0.1})
    target = tmp_path_factory.mktemp("hostile") / "report.html"
    return rd.report(hostile, target, title=bad, check=findings, exposure=shown, k=3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_opens_whole_at_every_width(browser, path, width, scheme):
    with Visit(browser, path, width, scheme) as visit:
        assert visit.errors == []
        assert visit.requests == [path.as_uri()]
        assert visit.wide() <= 0
        over = visit.page.evaluate(
            """() => [...document.querySelectorAll(
                   'h1, h2, h3, p, li, figure, .picture, .badge, summary, dl')]
                 .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
                 .filter(e => !e.closest('.scroll'))
                 .map(e => e.textContent.slice(0, 60))"""
        )
        assert over == []


def test_texts_of_pictures_stay_inside_them(browser, path):
    with Visit(browser, path, 360) as visit:
        cut = visit.page.evaluate(
            """() => [...document.querySelectorAll('.picture')].flatMap(svg => {
                 const box = svg.getBoundingClientRect();
                 return [...svg.querySelectorAll('text')].filter(text => {
                   const own = text.getBoundingClientRect();
                   return own.left < box.left - 3 || own.right > box.right + 3;
                 }).map(text => text.textContent);
               })"""
        )
        assert cut == []


def test_it_is_readable_without_script(browser, path):
    with Visit(browser, path, script=False) as visit:
        assert visit.page.locator("#verdict .lead").inner_text().strip()
        assert visit.page.locator("#leaderboard table >> nth=0 >> tbody tr").count() == 3
        assert visit.page.locator("button").count() == 0


def test_tables_are_sorted_by_keyboard(browser, path):
    with Visit(browser, path) as visit:

        def values():
            return [
                float(text.split()[0].rstrip("⁺⁻+−")) for text in visit.column("leaderboard", 2)
            ]

        before = values()
        assert before == sorted(before, reverse=True)
        head = visit.page.locator("#leaderboard table >> nth=0 >> thead th").nth(1)
        head.locator("button").focus()
        visit.page.keyboard.press("Enter")
        assert values() == sorted(before, reverse=True)  # the best comes first
        assert head.get_attribute("aria-sort") == "descending"
        visit.page.keyboard.press("Space")
        assert values() == sorted(before)
        assert head.get_attribute("aria-sort") == "ascending"
        visit.page.keyboard.press("Shift+Tab")
        visit.page.keyboard.press("Enter")
        assert visit.column("leaderboard", 1) == ["knn", "popularity", "random"]
        assert head.get_attribute("aria-sort") is None
        # Differences are sorted as numbers, although they are written with a true minus.
        table = visit.page.locator("#comparison table >> nth=0")
        table.locator("thead button", has_text="effect").press("Enter")
        shown = [text.split()[0].replace("−", "-") for text in visit.column("comparison", 4)]
        assert [float(text) for text in shown] == sorted(
            (float(text) for text in shown), reverse=True
        )
        table.locator("thead button", has_text="p (").press("Enter")
        assert (
            table.locator("[aria-sort]").get_attribute("aria-sort") == "ascending"
        )  # the smallest p comes first


def test_a_reader_chooses_metrics_k_and_models_and_the_address_keeps_it(browser, path):
    with Visit(browser, path) as visit:
        page, board = visit.page, visit.page.locator("#leaderboard table >> nth=0")

        def heads():
            return [
                " ".join(text.split())
                for text in board.locator("thead th:visible").all_inner_texts()
            ]

        before = heads()
        assert before[1].startswith("ndcg@10")
        page.get_by_label("k", exact=True).select_option("5")
        assert heads()[1].startswith("ndcg@5")
        page.get_by_label("recall", exact=True).press("Space")
        assert not any(name.startswith("recall") for name in heads())
        board.locator("thead button:visible").nth(1).press("Enter")
        page.get_by_label("up", exact=True).select_option("1")
        link = page.url
        assert visit.errors == []
    with Visit(browser, path) as visit:  # what a link shows is what its sender saw
        visit.page.goto(link)
        board = visit.page.locator("#leaderboard table >> nth=0")
        shown = [
            " ".join(text.split()) for text in board.locator("thead th:visible").all_inner_texts()
        ]
        assert shown[1].startswith("ndcg@5")
        assert not any(name.startswith("recall") for name in shown)
        assert board.locator("[aria-sort]").get_attribute("aria-sort") == "descending"
        assert visit.page.get_by_label("up", exact=True).input_value() == "1"
        assert visit.page.locator("figure svg circle.chosen").count() == 3
        assert visit.errors == []


def test_cards_are_sorted_on_a_phone_too(browser, path):
    with Visit(browser, path, 360) as visit:
        sorter = visit.page.locator("#comparison .sorter select")
        assert sorter.is_visible()
        sorter.select_option(label="relative")
        shown = visit.page.locator("#comparison tbody td[data-label=relative]").all_inner_texts()
        numbers = [float(text.replace("−", "-").rstrip("%")) for text in shown]
        assert numbers == sorted(numbers, reverse=True)
        visit.page.get_by_role("button", name="Turn round").first.press("Enter")
        shown = visit.page.locator("#comparison tbody td[data-label=relative]").all_inner_texts()
        assert [float(text.replace("−", "-").rstrip("%")) for text in shown] == sorted(numbers)


def test_long_sections_are_folded_on_a_phone(browser, path):
    height = "document.documentElement.scrollHeight"
    closed = "document.querySelectorAll('.fold:not([open])').length"
    with Visit(browser, path, 360, folded=True) as visit:
        assert visit.page.evaluate(height) < 7000
        folds = visit.page.evaluate(closed)
        assert folds > 3
        assert visit.page.locator("#leaderboard table").first.is_visible()
        assert visit.page.locator("#verdict .card").is_visible()
        visit.page.locator("nav a", has_text="Curves").press("Enter")
        visit.page.wait_for_selector("#curves .picture", state="visible")
        visit.page.locator("#curves summary").first.press("Enter")
        assert not visit.page.locator("#curves .picture").first.is_visible()
        visit.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert visit.page.evaluate(closed) == 0
        visit.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        visit.page.set_viewport_size({"width": 1280, "height": 900})
        visit.page.wait_for_selector(".fold", state="detached")
        assert visit.page.locator("#curves > .drawings").is_visible()
        visit.page.set_viewport_size({"width": 360, "height": 900})
        visit.page.wait_for_selector("#curves .fold", state="attached")
        assert visit.page.evaluate(closed) == folds
        assert (visit.errors, visit.wide()) == ([], 0)
    with Visit(browser, path) as wide:
        assert not wide.page.locator(".fold").count()
    with Visit(browser, path, 360, script=False) as plain:
        assert plain.page.locator("#curves .picture").first.is_visible()


def test_a_folded_page_is_printed_whole(browser, path):
    sizes = []
    for width in (360, 1280):
        with Visit(browser, path, width, folded=True) as visit:
            pdf = visit.page.pdf(format="A4", tagged=False)
            sizes.append(len(re.findall(rb"/Type\s*/Page\b", pdf)))
    assert sizes[0] == sizes[1]


def test_light_and_dark_are_toggled_by_keyboard(browser, path):
    with Visit(browser, path, scheme="dark") as visit:

        def paper():
            return visit.page.evaluate("getComputedStyle(document.body).backgroundColor")

        dark, toggle = paper(), visit.page.locator("#theme")
        assert toggle.inner_text() == "Light"
        toggle.press("Enter")
        assert (paper(), toggle.inner_text()) == ("rgb(255, 255, 255)", "Dark")
        toggle.press("Space")
        assert paper() == dark != "rgb(255, 255, 255)"
        assert visit.errors == []


def test_a_folded_table_opens_by_keyboard_and_a_table_is_saved(browser, path, result):
    with Visit(browser, path) as visit:
        folded = visit.page.locator("#definitions details")
        folded.locator("summary").press("Enter")
        assert folded.locator("tbody tr").first.is_visible()
        with visit.page.expect_download() as waiting:
            visit.page.get_by_role("button", name="Save as CSV: leaderboard.csv").press("Enter")
        saved = pd.read_csv(waiting.value.path())
        assert waiting.value.suggested_filename == "leaderboard.csv"
        values = sorted(result.summary["value"])  # of every metric at every k
        assert sorted(saved["value"]) == pytest.approx(values, abs=1e-15)
        assert visit.errors == []
        assert visit.requests[0] == path.as_uri()
        assert all(url.startswith("blob:") for url in visit.requests[1:])


@pytest.mark.parametrize("policy", [True, False])
def test_hostile_names_do_nothing(browser, hostile_path, tmp_path, policy):
    page = hostile_path
    if not policy:  # the escaping alone has to hold
        source = hostile_path.read_text(encoding="utf-8")
        bare = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", source)
        assert bare != source
        page = tmp_path / "bare.html"
        page.write_text(bare, encoding="utf-8")
    for width in (360, 1280):
        with Visit(browser, page, width) as visit:
            assert visit.errors == []
            assert visit.requests == [page.as_uri()]
            assert visit.wide() <= 0
            assert visit.page.evaluate("document.scripts.length") == 1
            assert visit.page.locator("img, iframe, object, embed, form, link").count() == 0
            assert visit.page.locator("a:not([href^='#'])").count() == 0
            names = visit.page.locator(
                "#leaderboard table >> nth=0 >> tbody th"
            ).all_text_contents()
            visit.page.get_by_label("Models with").fill("<script>")
            assert (
                visit.page.locator("#leaderboard table >> nth=0 >> tbody tr:visible").count() >= 1
            )
            assert any("<script>alert(1)</script>" in name for name in names)
            visit.page.get_by_label("Models with").fill("no such model")
            said = visit.page.get_by_role("status").first.text_content()
            assert said == "No model has “no such model” in its name."


def test_the_policy_stops_a_script_that_slipped_in(browser, path, tmp_path):
    source = path.read_text(encoding="utf-8")
    planted = "<script>document.title = 'planted'</script><b style='color:red'>x</b>"
    planted += "<img src='https://example.org/x.png'>"
    target = tmp_path / "planted.html"
    target.write_text(source.replace("<main>", f"<main>{planted}", 1), encoding="utf-8")
    with Visit(browser, target) as visit:
        assert visit.page.title() != "planted"
        assert (
            visit.page.locator("main > b").evaluate("one => getComputedStyle(one).color")
            != "rgb(255, 0, 0)"
        )
        assert visit.stopped == [("https://example.org/x.png", "csp")]  # before it left the browser
        assert sum("Content Security Policy" in error for error in visit.errors) >= 3


def test_it_prints_on_a4_without_cut_tables(browser, path):
    with Visit(browser, path) as visit:
        visit.page.emulate_media(media="print")
        visit.page.set_viewport_size({"width": 700, "height": 1000})  # A4 without its margins
        assert visit.wide() <= 0
        cut = visit.page.evaluate(
            """() => [...document.querySelectorAll('table')].filter(t => t.offsetParent)
                 .filter(t => t.scrollWidth > t.closest('.scroll').clientWidth + 1)
                 .map(t => t.closest('.scroll').ariaLabel)"""
        )
        assert cut == []
        assert visit.page.locator("nav").is_hidden()
        printed = visit.page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 16


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_pictures_of_twelve_long_names_are_legible(browser, many_path, width, scheme):
    with Visit(browser, many_path, width, scheme) as visit:
        assert visit.errors == []
        assert visit.wide() <= 0
        pictures = visit.page.evaluate(
            """() => [...document.querySelectorAll("svg.picture")].map(picture => {
                 const size = one => {
                   const box = one.getBoundingClientRect();
                   return [box.left, box.top, box.right, box.bottom];
                 };
                 const width = picture.getBoundingClientRect().width;
                 const scale = width / picture.viewBox.baseVal.width;
                 const pixels = text => scale * parseFloat(getComputedStyle(text).fontSize);
                 const said = text => ({text: text.textContent, box: size(text),
                                        pixels: pixels(text)});
                 const texts = [...picture.querySelectorAll("text")].map(said);
                 return {whole: size(picture), texts: texts};
               })"""
        )
        assert len(pictures) >= 4
        for picture in pictures:
            left, top, right, bottom = picture["whole"]
            for i, one in enumerate(picture["texts"]):
                x, y, to_x, to_y = one["box"]
                assert one["pixels"] >= 9, one
                assert left - 1 <= x <= to_x <= right + 1, one
                assert top - 3 <= y <= to_y <= bottom + 3, (
                    one
                )  # boxes of letters are higher than what is drawn
                for other in picture["texts"][:i]:
                    u, v, to_u, to_v = other["box"]
                    lines = (
                        3 if abs(to_y - y) < abs(to_x - x) else 0
                    )  # the boxes of two lines of a text overlap
                    apart = (
                        x >= to_u - 1
                        or u >= to_x - 1
                        or y >= to_v - 1 - lines
                        or v >= to_y - 1 - lines
                    )
                    assert apart, (one, other)


def test_a_picture_says_what_a_reader_points_at(browser, many_path):
    with Visit(browser, many_path, 360) as visit:
        tip, point = (
            visit.page.locator("#tip"),
            visit.page.locator("#curves .picture use[data-says]").first,
        )
        assert tip.is_hidden()
        assert visit.page.locator(".picture title").count() == 0
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert tip.is_visible()
        assert re.fullmatch(r"transformer-with-.*, ndcg@\d+: 0\.\d+ \[.*\]", tip.inner_text())
        visit.page.keyboard.press("Escape")
        assert tip.is_hidden()
        assert visit.errors == []
    with Visit(browser, many_path, script=False) as visit:
        assert visit.page.locator(".picture title").count() > 40


@pytest.mark.skipif(
    not AXE.exists(), reason="axe-core is not there: RECDF_AXE names its axe.min.js"
)
@pytest.mark.parametrize("kind", ["experiment", "plan", "interleaving", "history", "no coverage"])
def test_axe_finds_nothing_on_pages_of_every_kind(browser, kinds, kind):
    with Visit(browser, kinds[kind]) as visit:
        visit.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = visit.page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        assert [(rule["id"], node["html"][:200]) for rule in found for node in rule["nodes"]] == []
        target = visit.page.locator(".skip").get_attribute("href")
        assert visit.page.locator(f"main > {target}").count() == 1


def test_a_picture_that_stands_alone_has_letters_of_its_page(browser, kinds):
    with Visit(browser, kinds["no coverage"]) as visit:
        texts = "[...document.querySelectorAll('.chosen-text')]"
        heights = visit.page.evaluate(f"{texts}.map(t => t.getBoundingClientRect().height)")
        assert len(heights) > 6
        assert max(heights) < 30


def test_print_repeats_heads_shows_folded_tables_and_no_control(browser, many_path):
    with Visit(browser, many_path) as visit:
        visit.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        visit.page.emulate_media(media="print")
        # Chromium repeats no head that holds a control.
        assert (
            visit.page.evaluate("getComputedStyle(document.querySelector('thead button')).display")
            == "contents"
        )
        assert visit.page.locator("#definitions tbody tr").first.is_visible()
        assert not visit.page.locator(".chooser").is_visible()
        visit.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert visit.page.locator("#definitions details[open]").count() == 0


@pytest.mark.skipif(
    not AXE.exists(), reason="axe-core is not there: RECDF_AXE names its axe.min.js"
)
@pytest.mark.parametrize(
    ("width", "scheme", "folded"),
    [(360, "light", False), (360, "light", True), (1280, "dark", False), (1280, "light", False)],
)
def test_axe_finds_nothing(browser, path, width, scheme, folded):
    with Visit(browser, path, width, scheme, folded=folded) as visit:
        if not folded:
            visit.page.evaluate(
                "document.querySelectorAll('details').forEach(one => { one.open = true; })"
            )
        visit.page.evaluate(
            AXE.read_text(encoding="utf-8")
        )  # through the debugger, which the policy does not concern
        found = visit.page.evaluate("axe.run({resultTypes: ['violations']})")
        problems = [
            (rule["id"], node["html"][:200])
            for rule in found["violations"]
            for node in rule["nodes"]
        ]
        assert problems == []
        assert len(found["passes"]) > 20
