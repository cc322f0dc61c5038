"""report.html as a reader meets it: in a real browser, offline, with every control used."""

from __future__ import annotations

import base64
import functools
import http.server
import shutil
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from real_run import real_record, real_run
from running import stalefuzz
from synthetic_runs import NASTY, large, many_happenings, nasty

from reports.happenings import NONE, Happenings
from reports.html.page import render
from reports.record import RunRecord
from reports.reproduce.scripts import scripts_of

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
]

WIDTHS = (1280, 390)
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a file; the page keeps what it asked for in ``requests`` and what went wrong in ``complaints``."""
    contexts = []

    def open_file(path: Path | str, fragment: str = "", **options: Any) -> Any:
        options.setdefault("viewport", {"width": WIDTHS[0], "height": 900})
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        url = path if isinstance(path, str) else path.as_uri()
        page.goto(url + fragment)
        return page

    yield open_file
    for context in contexts:
        context.close()


def written(folder: Path, record: RunRecord, happenings: Happenings = NONE) -> Path:
    scripts = {finding.id: scripts_of(finding) for finding in record.findings}
    path = folder / "report.html"
    path.write_text(render(record, scripts, happenings), encoding="utf-8")
    return path


@pytest.fixture
def real_page(open_page: Open) -> Any:
    return open_page(real_run() / "report.html")


@pytest.fixture
def large_page(tmp_path: Path, open_page: Open) -> Any:
    return open_page(written(tmp_path, large(real_record()), many_happenings()))


def shown_titles(page: Any) -> list[str]:
    titles: list[str] = page.locator("#findings-table tbody tr:visible th a").all_inner_texts()
    return titles


def test_real_report_says_what_how_sure_how_to_reproduce_and_how_to_live_with_it(real_page: Any) -> None:
    words = real_page.inner_text("main")
    assert "1 new finding" in real_page.inner_text("h1")
    assert "Step 3 was answered with the state that step 1 computed" in words
    assert "5 of 5 runs from fresh state" in words
    assert "stalefuzz replay" in words
    assert "--cache-ram 0" in words
    assert real_page.complaints == []


def test_no_line_ends_within_a_flag(real_page: Any) -> None:
    flags = real_page.locator(".remedy .whole")
    assert "--cache-ram" in flags.all_inner_texts()
    for width in range(340, 1200, 20):
        real_page.set_viewport_size({"width": width, "height": 800})
        lines = flags.evaluate_all("flags => flags.map(flag => flag.getClientRects().length)")
        assert set(lines) == {1}


def test_no_request_leaves_the_page(real_page: Any) -> None:
    for button in real_page.locator("button").all():
        if button.is_visible():
            button.click()
    assert [url for url in real_page.requests if not url.startswith("data:")] == [(real_run() / "report.html").as_uri()]


def test_timeline_joins_stale_source_and_wrong_request(real_page: Any) -> None:
    assert real_page.locator("svg.lanes .is-source").count() == 1
    assert real_page.locator("svg.lanes .is-wrong").count() == 1
    assert "reused by step 3" in real_page.locator("svg.lanes .joint-label").inner_html()


def test_columns_sort_both_ways(large_page: Any) -> None:
    for sorter in large_page.locator("[data-sort]").all():
        column = sorter.evaluate("button => button.closest('th').cellIndex")
        orders = []
        for direction in ("ascending", "descending"):
            sorter.click()
            assert sorter.locator("xpath=..").get_attribute("aria-sort") == direction
            cells = f"rows => rows.map(row => row.cells[{column}].dataset.value)"
            orders.append(large_page.locator("#findings-table tbody tr").evaluate_all(cells))
        numeric = sorter.get_attribute("data-sort") == "number"
        keys = [[float(value) for value in order] if numeric else order for order in orders]
        assert keys[0] == sorted(keys[0])
        assert keys[1] == sorted(keys[1], reverse=True)


def test_filters_narrow_table_and_findings(large_page: Any) -> None:
    large_page.select_option("[data-filter=severity]", "high")
    large_page.select_option("[data-filter=state]", "known")
    rows = large_page.locator("#findings-table tbody tr:visible")
    expected = sum(number % 3 == 0 and number % 5 == 0 for number in range(50))
    assert rows.count() == expected
    assert large_page.locator("details.finding:visible").count() == expected
    assert large_page.inner_text("#shown") == f"{expected} of 50 shown"
    large_page.select_option("[data-filter=severity]", "")
    large_page.select_option("[data-filter=state]", "")
    large_page.select_option("[data-filter=kind]", "stale-reuse")
    assert rows.count() == 12
    large_page.select_option("[data-filter=kind]", "")
    large_page.fill("#search", "number 17")
    assert shown_titles(large_page) == ["stale thing number 17"]


def test_event_filter_hides_a_kind(large_page: Any) -> None:
    rows = large_page.locator("#events-table tbody tr:visible")
    before = rows.count()
    large_page.locator("input[data-event=dropped]").uncheck()
    assert rows.count() == before / 2
    large_page.locator("input[data-event=dropped]").check()
    assert rows.count() == before


def test_deep_link_unfolds_its_finding(large_page: Any, open_page: Open) -> None:
    page = open_page(large_page.url, "#finding-00001e")
    folded = page.locator("#finding-00001e")
    assert folded.get_attribute("open") is not None
    playwright_api.expect(folded).to_be_in_viewport()
    assert page.locator("#finding-00001f").get_attribute("open") is None
    page.locator("#findings-table a[href='#finding-00001f']").click()
    assert page.locator("#finding-00001f").get_attribute("open") is not None


@pytest.fixture
def served() -> Iterator[str]:
    """The folder over HTTP: clipboards want an origin."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            return

    handler = functools.partial(Quiet, directory=str(real_run()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/report.html"
        server.shutdown()
        thread.join()


def test_copy_buttons_copy(served: str, open_page: Open) -> None:
    page = open_page(served, permissions=["clipboard-read", "clipboard-write"])
    name = next((real_run() / "findings").glob("*.json")).stem
    folder = real_run() / "findings" / name
    for what, file in (("curl", "repro.sh"), ("pytest", "test_repro.py"), ("issue", "ISSUE.md")):
        button = page.locator(f"[data-copy={what}-{name}]")
        button.click()
        playwright_api.expect(button).to_contain_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").strip() == (folder / file).read_text().strip()
    page.locator(f"[data-copy=replay-{name}]").click()
    playwright_api.expect(page.locator("#said")).to_have_text("copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("stalefuzz replay ")


def test_without_clipboard_the_text_is_selected(real_page: Any) -> None:
    real_page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('no')))")
    real_page.evaluate("void (document.execCommand = () => false)")
    button = real_page.locator("[data-copy^=curl-]")
    button.click()
    playwright_api.expect(button).to_contain_text("Selected")
    assert real_page.evaluate("getSelection().toString()").startswith("#!/bin/sh")


def test_theme_button_goes_round_and_is_remembered(served: str, open_page: Open) -> None:
    page = open_page(served)
    button = page.locator("#theme")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button.click()
    button.click()
    assert "dark" in button.inner_text()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark
    button.click()
    assert page.evaluate(background) == light


def test_dark_system_gets_a_dark_page(open_page: Open) -> None:
    page = open_page(real_run() / "report.html", color_scheme="dark")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in colour[4:-1].split(",")) < 60


CONTRAST = """() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const channel = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const element of document.querySelectorAll('main *, header *, footer *')) {
    const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!text || element.closest('svg') || !element.getClientRects().length) continue;
    const pair = [luminance(parse(getComputedStyle(element).color)), luminance(ground(element))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < 4.5) bad.push(`${element.tagName}.${element.className} ${ratio.toFixed(2)} ${element.textContent}`);
  }
  return bad.slice(0, 10);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page: Open, scheme: str) -> None:
    """Contrast of at least 4.5, WCAG 2 level AA."""
    assert open_page(real_run() / "report.html", color_scheme=scheme).evaluate(CONTRAST) == []


def test_planted_markup_is_inert(tmp_path: Path, open_page: Open) -> None:
    page = open_page(written(tmp_path, nasty(real_record())))
    page.wait_for_load_state()
    assert page.evaluate("window.planted") is None
    assert page.locator("main script, main img, main style").count() == 0
    assert page.locator("[onerror], [onclick], [style]").count() == 0
    assert page.complaints == []
    assert "<script>window.planted=1</script>" in page.inner_text("main")
    assert "\u202e" not in page.content()
    assert NASTY not in page.content()


def test_policy_stops_what_slips_through(real_page: Any) -> None:
    """Even markup put into the page by hand runs nothing and loads nothing."""
    before = len(real_page.requests)
    real_page.evaluate(
        """() => { const place = document.createElement('div'); document.body.append(place);
        place.innerHTML = '<img src="http://127.0.0.1:9/x.png" onerror="window.planted = 1">';
        const script = document.createElement('script'); script.textContent = 'window.planted = 1';
        document.body.append(script); }"""
    )
    assert real_page.evaluate("window.planted") is None
    assert real_page.requests[before:] == [] or real_page.complaints


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["real_run", "large"])
def test_nothing_sticks_out_sideways(width: int, which: str, tmp_path: Path, open_page: Open) -> None:
    path = (
        real_run() / "report.html"
        if which == "real_run"
        else written(tmp_path, large(real_record()), many_happenings())
    )
    page = open_page(path, viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


COMPARE = """async (images) => {
  const pixels = await Promise.all(images.map(async (data) => {
    const image = new Image(); image.src = 'data:image/png;base64,' + data; await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height); const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0); return context.getImageData(0, 0, image.width, image.height);
  }));
  const [a, b] = pixels;
  if (a.width !== b.width || a.height !== b.height) return 1;
  let differing = 0;
  for (let at = 0; at < a.data.length; at += 4)
    if ([0, 1, 2].some((channel) => Math.abs(a.data[at + channel] - b.data[at + channel]) > 16)) differing += 1;
  return differing / (a.width * a.height);
}"""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_second_rendering_looks_the_same(width: int, tmp_path: Path, open_page: Open) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(real_run(), copy)
    (copy / "report.html").unlink()
    assert stalefuzz("report", str(copy), folder=tmp_path).status == 0
    viewport = {"width": width, "height": 900}
    pages = [open_page(path / "report.html", viewport=viewport) for path in (real_run(), copy)]
    shots = [shot(page) for page in pages]
    blank = open_page("about:blank")
    assert blank.evaluate(COMPARE, shots) < 0.001
    # The comparison can fail: it sees a banner without its text.
    pages[1].locator(".verdict").evaluate("banner => { banner.style.background = banner.style.color = 'black'; }")
    assert blank.evaluate(COMPARE, [shots[0], shot(pages[1])]) > 0.001


def shot(page: Any) -> str:
    return base64.b64encode(page.screenshot(full_page=True)).decode()


def test_keyboard_alone_reaches_and_works_everything(large_page: Any) -> None:
    large_page.keyboard.press("Tab")
    assert large_page.evaluate("document.activeElement.className") == "skip"
    large_page.locator("[data-sort]").first.focus()
    large_page.keyboard.press("Enter")
    assert large_page.locator("th[aria-sort=ascending]").count() == 1
    large_page.locator("#finding-000003 > summary").focus()
    large_page.keyboard.press("Enter")
    assert large_page.locator("#finding-000003").get_attribute("open") is not None
    unreachable = large_page.evaluate(
        "[...document.querySelectorAll('a[href], button, input, select, summary')].filter(e => e.tabIndex < 0).length"
    )
    assert unreachable == 0


def test_everything_has_a_name_for_screen_readers(real_page: Any) -> None:
    tree = real_page.locator("body").aria_snapshot()
    roles = ["button", "link", "img", "textbox", "searchbox", "combobox", "region", "checkbox"]
    assert [line for line in tree.splitlines() if line.strip().rstrip(":").removeprefix("- ") in roles] == []
    assert 'heading "1 new finding' in tree
    levels = real_page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_paper_shows_every_finding_and_no_controls(large_page: Any) -> None:
    large_page.emulate_media(media="print")
    large_page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert large_page.locator("details.finding:not([open])").count() == 0
    assert not large_page.locator("header.bar").is_visible()
    large_page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert large_page.locator("details.finding[open]").count() == 2


def test_large_run_fits_and_opens_at_once(tmp_path: Path, open_page: Open) -> None:
    path = written(tmp_path, large(real_record()), many_happenings())
    assert path.stat().st_size < 2_000_000
    page = open_page("about:blank")
    session = page.context.new_cdp_session(page)
    # Processor time, since the tests share the machine with whatever else runs.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    assert metrics["ProcessTime"] < 1.0


def test_page_says_what_it_leaves_out(large_page: Any) -> None:
    notes = " ".join(large_page.locator(".truncated").all_text_contents())
    assert "600 more events" in notes
    assert "more tokens of the answer" in notes
    assert "320 more steps of the original plan" in notes


def test_page_without_scripting_still_tells_everything(open_page: Open) -> None:
    page = open_page(real_run() / "report.html", java_script_enabled=False)
    assert "Step 3 was answered with the state" in page.inner_text("main")
