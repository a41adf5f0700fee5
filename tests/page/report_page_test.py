"""Opens a report's page in headless Chromium and tries it as a reader would.
usage: report_page_test.py FOLDER_OF_TOOLS [--page FILE] [--screenshots FOLDER]
Without --page, the page is the one that report_page_demo writes: every kind of block, hostile names everywhere."""

import argparse
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError as error:
    print(f"skipped: {error} (Debian's package python3-selenium)")
    sys.exit(77)  # CTest's SKIP_RETURN_CODE

SIZES = {1280: 900, 390: 844}


class Page:
    """The page in a browser, and what was found wrong with it."""

    def __init__(self, path, chromium, chromedriver, screenshots):
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--no-first-run", "--disable-background-networking", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(chromedriver))
        self.address = pathlib.Path(path).resolve().as_uri()
        self.screenshots = screenshots
        self.problems = []
        self.requests = []

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def expect(self, right, words):
        if not right:
            self.problems.append(words)
            print(f"  WRONG: {words}")

    def open(self, width, address=None):
        """Loads the page anew at a width and waits until everything is drawn."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": SIZES[width], "deviceScaleFactor": 1, "mobile": width < 600})
        start = time.monotonic()
        self.driver.get(address or self.address)
        while self.run("return document.documentElement.dataset.state") != "ready":
            if time.monotonic() - start > 120:
                raise AssertionError("the page did not finish drawing within two minutes")
            time.sleep(0.02)
        seconds = time.monotonic() - start
        # What is far from the window or folded is laid out too, as on paper: it is measured and photographed here.
        self.run("document.documentElement.classList.add('paper');"
                 "document.querySelectorAll('.fold').forEach(fold => { fold.open = true; })")
        return seconds

    def collect_logs(self):
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def shoot(self, name):
        """The whole page, in pieces that can be looked at."""
        if not self.screenshots:
            return
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        for index, top in enumerate(range(0, min(height, 40000), 1500)):
            image = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": top, "width": width, "height": min(1500, height - top), "scale": 1}})
            (self.screenshots / f"{name}-{index:02}.png").write_bytes(base64.b64decode(image["data"]))


def figures_of(sections):
    for section in sections:
        yield from (block for block in section["blocks"] if block["block"] == "figure")
        yield from figures_of(section.get("sections", []))


def tables_of(sections):
    for section in sections:
        yield from (block for block in section["blocks"] if block["block"] == "table")
        yield from tables_of(section.get("sections", []))


def drawable(figure, point):
    x, y = point[0], point[1]
    if x is None or y is None:
        return False
    if figure["kind"] == "bars":
        categories = figure["x"].get("categories", [])
        return x in range(len(categories)) and (not figure["y"].get("log") or y > 0)
    if figure["kind"] == "area":
        return not figure["x"].get("log") or x > 0
    return (not figure["x"].get("log") or x > 0) and (not figure["y"].get("log") or y > 0)


def check_drawn(page, report):
    """Every chart has its data drawn: marks are counted against the JSON."""
    marks = 0
    for figure in figures_of(report["sections"]):
        where = f"figure {figure['id']}"
        drawn = page.run("""
            const box = document.getElementById(arguments[0]);
            const count = selector => box.querySelectorAll(selector).length;
            const series = {};
            box.querySelectorAll('g.series').forEach(group => {
              const paths = [...group.querySelectorAll('path.stroke, path.layer')];
              series[group.dataset.series] = {points: Number(group.dataset.points || 0), marks: group.querySelectorAll('.bar').length +
                  [...group.querySelectorAll('.marks')].reduce((sum, path) => sum + path.getAttribute('d').split(/m/i).length - 1, 0), shown: getComputedStyle(group).display !== 'none',
                path: paths.some(path => (path.getAttribute('d') || '').length > 8), finite: !/NaN|Infinity|undefined/.test(group.outerHTML)};
            });
            return {svg: count('svg.plot'), label: (box.querySelector('svg.plot') || document.body).getAttribute('aria-label'), series: series,
              bad: /NaN|Infinity|undefined/.test([...box.querySelectorAll('svg.plot *')].map(node => [...node.attributes].filter(a => a.name !== 'id').map(a => a.value).join(' ')).join(' ')),
              nodes: count('.node'), edges: count('.edge'), roofs: count('.roof-line path'),
              spans: [...box.querySelectorAll('.span')].reduce((sum, node) => sum + Number(node.dataset.spans), 0)};
            """, figure["id"])
        page.expect(drawn["svg"] == 1, f"{where}: {drawn['svg']} drawings")
        page.expect(drawn["label"] and figure["title"] in drawn["label"], f"{where}: no description")
        page.expect(not drawn["bad"], f"{where}: an attribute is not a number")
        if figure["kind"] == "spans":
            expected = sum(span[3] is not None and span[4] is not None for span in figure["spans"])
            page.expect(drawn["spans"] == expected, f"{where}: {drawn['spans']} of {expected} spans")
            marks += expected
        elif figure["kind"] == "diagram":
            expected = len({tuple(edge) for edge in figure["edges"] if edge[0] != edge[1]})
            page.expect(drawn["nodes"] == len(figure["nodes"]), f"{where}: {drawn['nodes']} of {len(figure['nodes'])} boxes")
            page.expect(drawn["edges"] == expected, f"{where}: {drawn['edges']} of {expected} arrows")
            marks += drawn["nodes"]
        else:
            marks += check_series(page, figure, drawn, where)
    return marks


def check_series(page, figure, drawn, where):
    marks = 0
    for index, series in enumerate(figure["series"]):
        expected = sum(drawable(figure, point) for point in series["points"])
        here = f"{where}, series {index}"
        if series["style"] == "roof" and figure["kind"] == "xy":
            page.expect(drawn["roofs"] > 0, f"{here}: no roof drawn")
            continue
        got = drawn["series"].get(str(index))
        if series.get("hidden"):
            page.expect(got is None or not got["shown"], f"{here}: hidden at first, yet drawn")
            continue
        page.expect(got is not None and got["shown"] or not series["points"], f"{here}: not drawn")
        if got is None:
            continue
        marks += expected
        if figure["kind"] == "bars":
            page.expect(got["marks"] == expected, f"{here}: {got['marks']} of {expected} bars")
            continue
        page.expect(got["points"] == expected, f"{here}: {got['points']} of {expected} points")
        if figure["kind"] == "xy" and series["style"] in ("points", "line_points"):
            # Of the dots of a long series, those on one pixel are drawn once.
            right = got["marks"] == expected if len(series["points"]) <= 200 else expected / 4 < got["marks"] <= expected
            page.expect(right, f"{here}: {got['marks']} of {expected} marks")
        if expected > 1 and (figure["kind"] == "area" or series["style"] != "points"):
            page.expect(got["path"], f"{here}: no line")
    return marks


def column_texts(page, table, column):
    return page.run("return [...document.getElementById(arguments[0]).querySelectorAll('tbody tr')]"
                    ".map(row => row.cells[arguments[1]].firstChild ? row.cells[arguments[1]].textContent : '')", table, column)


def check_tables(page, report):
    """Sorting both ways with what is missing last, filtering, footnotes, headers."""
    for table in tables_of(report["sections"]):
        where = f"table {table['id']}"
        cells = [[cell if isinstance(cell, dict) else {"t": cell} for cell in row] for row in table["rows"]]
        rows = page.run("return document.getElementById(arguments[0]).querySelectorAll('tbody tr:not(.group)').length", table["id"])
        page.expect(rows == len(cells), f"{where}: {rows} of {len(cells)} rows")
        has_filter = page.run("return document.getElementById(arguments[0]).querySelector('.filter') !== null", table["id"])
        page.expect(has_filter == (len(cells) > 15), f"{where}: filter box {has_filter} with {len(cells)} rows")
        notes = page.run("return [...document.getElementById(arguments[0]).querySelectorAll('.notes li')].map(li => li.textContent)", table["id"])
        page.expect(all(note in shown for note, shown in zip(table.get("notes", []), notes)) and len(notes) == len(table.get("notes", [])),
                    f"{where}: notes are not all shown")
        for column, head in enumerate(table["columns"]):
            for direction in ("ascending", "descending", "none"):
                state, values = page.run("""
                    const box = document.getElementById(arguments[0]), head = box.querySelectorAll('thead th')[arguments[1]];
                    head.querySelector('button').click();
                    return [head.getAttribute('aria-sort'), [...box.querySelectorAll('tbody tr:not(.group)')].map(row => row.cells[arguments[1]].textContent)];
                    """, table["id"], column)
                page.expect(state == direction, f"{where}, column {column}: aria-sort {state} instead of {direction}")
                check_order(page, [row[column] for row in cells], values, direction, head, f"{where}, column {column}, {direction}")


def check_order(page, cells, shown, direction, head, where):
    """What is shown against the numbers of the JSON, which the page is given to sort by."""
    if not head.get("number"):
        if direction == "none":
            page.expect(all(cell["t"].split(" [")[0] in text for cell, text in zip(cells, shown)), f"{where}: not as it came")
        return
    present = sorted((cell["v"] for cell in cells if cell.get("v") is not None), reverse=direction == "descending")
    if direction == "none":
        return
    by_value = {}
    for cell in cells:
        if cell.get("v") is not None:
            by_value.setdefault(cell["v"], set()).add(cell["t"].split(" [")[0])
    for text, value in zip(shown, present):
        page.expect(any(text.startswith(each) for each in by_value[value]), f"{where}: '{text}' where {value} belongs")
    absent = {cell["t"] for cell in cells if cell.get("v") is None}
    for text in shown[len(present):]:
        page.expect(any(text.startswith(each) for each in absent), f"{where}: '{text}' after the last number")


def check_groups(page, report):
    """Headings stand above the rows that share something; sorted rows tell it themselves."""
    for table in tables_of(report["sections"]):
        if "groups" not in table:
            continue
        shown, away, own = page.run("""
            const box = document.getElementById(arguments[0]);
            const visible = nodes => [...nodes].filter(node => node.offsetParent !== null).length;
            const shown = [...box.querySelectorAll('.group')].map(row => row.textContent), away = visible(box.querySelectorAll('.away'));
            box.querySelectorAll('thead button')[box.querySelectorAll('thead th').length - 1].click();
            const own = box.querySelectorAll('.group').length === 0 && visible(box.querySelectorAll('.row-group'));
            for (let i = 0; i < 2; ++i) box.querySelectorAll('thead button')[box.querySelectorAll('thead th').length - 1].click();
            return [shown, away, own];
            """, table["id"])
        expected = [name for index, name in enumerate(table["groups"]) if index == 0 or name != table["groups"][index - 1]]
        page.expect(shown == expected and len(set(shown)) == len(shown), f"table {table['id']}: headings {shown}")
        page.expect(away == 0, f"table {table['id']}: {away} cells that belong into headings")
        page.expect(own == len(table["rows"]), f"table {table['id']}: {own} sorted rows tell what they share")


def check_tables_fit(page, width):
    """No table has to be scrolled sideways, and no number is cut off."""
    wide = page.run("return [...document.querySelectorAll('.table-scroll')].filter(box => box.scrollWidth > box.clientWidth + 1)"
                    ".map(box => box.closest('.table-block').id + ' (' + box.scrollWidth + ' in ' + box.clientWidth + ')')")
    count = page.run("return document.querySelectorAll('.table-scroll').length")
    print(f"at {width} px {len(wide)} of {count} tables overflow")
    page.expect(not wide, f"at {width} px tables overflow: {wide[:8]}")


def check_folds(page, report):
    """Folded sections are closed at first, open where a link leads into them, and are whole on paper."""
    folded = [inner for section in report["sections"] for inner in [section, *section.get("sections", [])] if inner.get("folded")]
    if not folded:
        return
    page.driver.get("about:blank")
    page.open(1280)
    page.run("document.querySelectorAll('.fold').forEach(fold => { fold.open = false; })")
    for section in folded:
        inside = section["blocks"][0].get("id", section["id"]) if section["blocks"] else section["id"]
        closed, opened = page.run("""
            const place = document.getElementById(arguments[1]), seen = () => place.checkVisibility();
            const before = document.getElementById(arguments[0]).querySelector('.fold').open;
            const link = document.createElement('a');
            link.href = '#' + arguments[1];
            document.body.append(link);
            link.click();
            link.remove();
            return [!before, seen()];
            """, section["id"], inside)
        page.expect(closed and opened, f"section {section['id']}: folded {closed}, opened by a link {opened}")
    page.run("document.querySelectorAll('.fold').forEach(fold => { fold.open = false; })")
    whole = page.run("dispatchEvent(new Event('beforeprint')); const open = document.querySelectorAll('.fold:not([open])').length === 0;"
                     "dispatchEvent(new Event('afterprint')); return open && document.querySelectorAll('.fold[open]').length === 0")
    page.expect(whole, "folded sections are not whole on paper, or stay open after printing")


def check_filter(page):
    result = page.run("""
        const input = document.querySelector('.filter');
        if (!input) return null;
        const rows = [...input.closest('.table-block').querySelectorAll('tbody tr')], word = rows[3].textContent.trim().slice(0, 6);
        const visible = () => rows.filter(row => row.offsetParent !== null).length;
        input.value = 'no such row at all'; input.dispatchEvent(new Event('input'));
        const none = visible();
        input.value = ''; input.dispatchEvent(new Event('input'));
        return [none, visible(), rows.length];
        """)
    if result:
        page.expect(result[0] == 0 and result[1] == result[2], f"filter: {result}")


def check_legends(page, report):
    """Each legend hides and shows its series, by click and by key."""
    toggled = 0
    for figure in figures_of(report["sections"]):
        for index in range(page.run("return document.getElementById(arguments[0]).querySelectorAll('.legend-entry').length", figure["id"])):
            script = """
                const box = document.getElementById(arguments[0]), button = box.querySelectorAll('.legend-entry')[arguments[1]];
                if (arguments[2]) button.click();
                return [button.getAttribute('aria-pressed'), box.querySelectorAll('.series[data-series="' + arguments[1] + '"]:not([display]), .roof-line[data-series="' + arguments[1] + '"]:not([display])').length,
                  box.querySelectorAll('.node:not(.dim), .span:not([display])').length];
                """
            before, off, again = (page.run(script, figure["id"], index, click) for click in (False, True, True))
            page.expect(before[0] != off[0] and again == before, f"figure {figure['id']}, entry {index}: {before}, {off}, {again}")
            changed = off[2] != before[2] if figure["kind"] in ("spans", "diagram") else off[1] != before[1]
            page.expect(changed, f"figure {figure['id']}, entry {index}: toggling changes nothing")
            toggled += 1
    if toggled:
        button = page.driver.find_element(By.CSS_SELECTOR, ".legend-entry")
        before = button.get_attribute("aria-pressed")
        button.send_keys(Keys.SPACE)
        page.expect(button.get_attribute("aria-pressed") != before, "a legend's entry does not answer to the space bar")
        button.send_keys(Keys.SPACE)
    return toggled


def check_values(page, report):
    """Pointing at a figure, and its arrow keys, tell values."""
    for figure in figures_of(report["sections"]):
        told = page.run("""
            const box = document.getElementById(arguments[0]).querySelector('.canvas'), tip = document.getElementById('page-tip');
            box.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
            const text = tip.hidden ? '' : tip.textContent;
            box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
            return [text, tip.hidden];
            """, figure["id"])
        page.expect(len(told[0]) > 3 and told[1], f"figure {figure['id']}: values are not told ({told})")


def check_zoom(page, report):
    for figure in figures_of(report["sections"]):
        if figure["kind"] != "spans" or len(figure["spans"]) < 100:
            continue
        seconds = page.driver.execute_async_script("""
            const [id, done] = arguments, box = document.getElementById(id).querySelector('.canvas'), place = box.getBoundingClientRect();
            const start = performance.now();
            let left = 20;
            const step = () => {
              if (!left--) return done((performance.now() - start) / 20000);
              box.dispatchEvent(new WheelEvent('wheel', {deltaY: -60, ctrlKey: true, clientX: place.left + place.width / 3, clientY: place.top + 40, cancelable: true}));
              requestAnimationFrame(() => requestAnimationFrame(step));
            };
            step();
            """, figure["id"])
        spans = page.run("return [...document.getElementById(arguments[0]).querySelectorAll('.span')].reduce((sum, node) => sum + Number(node.dataset.spans), 0)", figure["id"])
        page.expect(0 < spans < len(figure["spans"]), f"figure {figure['id']}: zooming in shows {spans} of {len(figure['spans'])} spans")
        page.run("[...document.getElementById(arguments[0]).querySelectorAll('.tool')].find(each => each.textContent === 'All').click()", figure["id"])
        print(f"  {figure['id']}: {len(figure['spans'])} spans, a frame of zooming takes {1000 * seconds:.0f} ms")


def check_widths(page, width):
    """Nothing reaches beyond the viewport, but what lies in a box that scrolls."""
    wide = page.run("""
        const width = document.documentElement.clientWidth, found = [];
        if (document.documentElement.scrollWidth > width) found.push('the page is ' + document.documentElement.scrollWidth + ' wide');
        const scrolls = node => node && node !== document.body && (/auto|scroll|hidden/.test(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
        for (const node of document.body.querySelectorAll('*')) {
          const box = node.getBoundingClientRect();
          if (!box.width || !box.height || node.closest('.skip, #page-tip, defs')) continue;
          if ((box.right > width + 1 || box.left < -1) && !scrolls(node)) found.push(node.tagName + '.' + (node.getAttribute('class') || '') + ' to ' + Math.round(box.right) + ': ' + node.textContent.slice(0, 40));
          if (node.ownerSVGElement && node.tagName !== 'svg' && node.tagName === 'text' && !node.closest('[clip-path]')) {
            const svg = node.ownerSVGElement.getBoundingClientRect();
            if (box.right > svg.right + 2 || box.left < svg.left - 2) found.push('text leaves its figure: ' + node.textContent.slice(0, 40));
          }
        }
        return found.slice(0, 12);
        """)
    for each in wide:
        page.expect(False, f"at {width} px: {each}")


def check_text(page, report):
    """What the document says is there as text, and nothing of it became an element."""
    shown = page.run("return document.body.textContent")
    page.expect(page.run("return window.injected") is None, "a name was run as a script")
    foreign = page.run("return document.querySelectorAll('img, iframe, object, embed, form, video, audio, body script:not([type=\"application/json\"]) ~ script ~ script').length")
    page.expect(foreign == 0, f"{foreign} elements that the page never makes")
    ids = page.run("return [...document.querySelectorAll('[id]')].map(node => node.id)")
    page.expect(len(ids) == len(set(ids)), f"ids repeat: {sorted({each for each in ids if ids.count(each) > 1})[:5]}")

    def texts(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key in ("title", "caption", "text", "statement", "name", "t"):
                    if isinstance(inner, str):
                        yield inner
                yield from texts(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner)

    for section in report["sections"]:
        for block in section["blocks"]:
            if block["block"] == "figure":
                block = {"title": block["title"], "caption": block.get("caption", "")}
            for text in texts(block):
                plain = text.split(" [")[0]
                page.expect(plain in shown, f"not on the page: {text[:60]}")
    broken = page.run("return [...document.querySelectorAll('a[href^=\"#\"]')].filter(link => !document.getElementById(decodeURIComponent(link.hash.slice(1)))).map(link => link.hash).slice(0, 5)")
    page.expect(not broken, f"links that lead nowhere: {broken}")


def check_evidence(page):
    """A number in the text leads to the rows of its runs, and back."""
    links = page.driver.find_elements(By.CSS_SELECTOR, "main p a.evidence")
    if not links:
        return
    href = links[0].get_attribute("href").split("#")[1]
    page.run("arguments[0].click()", links[0])
    seen = page.run("const row = document.getElementById(arguments[0]), box = row.getBoundingClientRect();"
                    "return [row.offsetParent !== null, box.top >= 0 && box.bottom <= innerHeight, !row.closest('.table-block').querySelector('.selection').hidden]", href)
    page.expect(all(seen), f"the row {href} is not shown: {seen}")
    page.run("[...document.querySelectorAll('.selection button')].pop().click()")


def check_theme(page):
    ground = "return getComputedStyle(document.body).backgroundColor"
    before = page.run(ground)
    page.driver.find_element(By.ID, "page-theme").click()
    after = page.run(ground)
    page.expect(before != after, "the switch of light and dark changes nothing")
    page.open(1280)
    page.expect(page.run(ground) == after, "the choice of light or dark is forgotten")
    page.driver.find_element(By.ID, "page-theme").click()
    page.run("localStorage.clear()")
    for scheme in ("dark", "light"):
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        page.open(1280)
        page.expect(page.run("return document.documentElement.dataset.theme") == scheme, f"the system's {scheme} is not followed")


def check_print(page, screenshots):
    pdf = page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})["data"]
    page.expect(len(pdf) > 20000, "the printed page is empty")
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 690, "height": 980, "deviceScaleFactor": 1, "mobile": False})
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    wide = page.run("return [...document.querySelectorAll('.table-scroll table')].filter(table => table.getBoundingClientRect().right > 691)"
                    ".map(table => table.closest('.table-block').id)")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    page.expect(not wide, f"tables reach beyond the paper: {wide[:8]}")
    if screenshots:
        (screenshots / "print.pdf").write_bytes(base64.b64decode(pdf))


def check_saving(page, folder):
    """The buttons save files, without any request."""
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    names = page.run("""
        const names = [], table = document.querySelector('.table-block'), figure = document.querySelector('.figure');
        if (table) { names.push(table.id + '.csv'); table.querySelector('.tools .tool').click(); }
        if (figure) [...figure.querySelectorAll('.tools .tool')].filter(each => each.textContent === 'SVG').forEach(each => { names.push(figure.id + '.svg'); each.click(); });
        return names;
        """)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not all((folder / name).exists() for name in names):
        time.sleep(0.05)
    for name in names:
        page.expect((folder / name).exists() and (folder / name).stat().st_size > 40, f"{name} was not saved")
        if name.endswith(".svg") and (folder / name).exists():
            page.expect("var(" not in (folder / name).read_text("utf-8"), f"{name} needs the page's style")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    parser.add_argument("--page")
    parser.add_argument("--screenshots", type=pathlib.Path)
    options = parser.parse_args()
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        print("skipped: chromium or chromedriver is not installed (Debian's packages chromium and chromium-driver)")
        sys.exit(77)
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path = options.page
        if not path:
            path = folder / "demo.html"
            subprocess.run([pathlib.Path(options.tools) / "report_page_demo", path], check=True)
        size = pathlib.Path(path).stat().st_size
        page = Page(path, chromium, chromedriver, options.screenshots)
        try:
            failed = try_page(page, size, folder, options.screenshots)
        finally:
            page.driver.quit()
    sys.exit(1 if failed else 0)


def try_page(page, size, folder, screenshots):
    seconds = page.open(1280)
    report = json.loads(page.run("return document.getElementById('page-data').textContent"))
    print(f"{size / 1e6:.2f} MB, drawn in {seconds:.2f} s")
    check_text(page, report)
    marks = check_drawn(page, report)
    print(f"{sum(1 for _ in figures_of(report['sections']))} figures with {marks} marks, {sum(1 for _ in tables_of(report['sections']))} tables")
    check_widths(page, 1280)
    check_tables_fit(page, 1280)
    check_tables(page, report)
    check_groups(page, report)
    check_filter(page)
    print(f"{check_legends(page, report)} entries of legends toggled")
    check_values(page, report)
    check_zoom(page, report)
    check_evidence(page)
    check_saving(page, folder)
    check_theme(page)
    page.shoot("1280-light")
    page.run("document.documentElement.dataset.theme = 'dark'")
    page.shoot("1280-dark")
    page.open(390)
    check_widths(page, 390)
    check_tables_fit(page, 390)
    check_drawn(page, report)
    page.shoot("390-light")
    page.run("document.documentElement.dataset.theme = 'dark'")
    page.shoot("390-dark")
    check_folds(page, report)
    page.open(1280)
    check_print(page, screenshots)

    for message in page.collect_logs():
        page.expect(False, f"console: {message[:300]}")
    outside = [url for url in page.requests if not url.startswith((page.address, "data:", "blob:"))]
    page.expect(not outside, f"requests left the page: {outside[:5]}")
    entries = page.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
    page.expect(not [name for name in entries if not name.startswith(("data:", "blob:"))], f"resources were loaded: {entries[:5]}")
    page.expect(page.run("return window.injected") is None, "a name was run as a script")
    print(f"{len(page.problems)} problems")
    return page.problems


if __name__ == "__main__":
    main()
