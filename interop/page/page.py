"""The web pages of a cluster in a real browser: every page, no error on its console, axe finds no serious fault; files
are written, read, changed and deleted; a DataNode is killed, shown, and what it had is mended while the page looks."""

import argparse
import hashlib
import os
import sys
import traceback

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from cluster import Cluster  # noqa: E402

PAGES = {
    "overview": "/",
    "datanodes": "/datanodes",
    "coding": "/coding",
    "files": "/files",
    "snapshots": "/snapshots",
    "slow": "/slow",
    "startup": "/startup",
    "workers": "/workers",
    "events": "/events",
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
# Of what axe finds, what keeps somebody from using a page.
SERIOUS = ("serious", "critical")
USER = os.environ.get("USER", "root")
DATANODES = 7
NAME = "a b <i>&\"' 漢字 %41+;.txt"


class Test:
    def __init__(self, browser, cluster, shots):
        self.cluster, self.shots, self.browser = cluster, shots, browser
        self.passed, self.failed, self.said = 0, [], []
        self.context = browser.new_context(accept_downloads=True)
        self.context.set_default_timeout(30_000)
        self.page = self.watched(self.context)

    def watched(self, context):
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        return page

    def check(self, name, test):
        self.said.clear()
        try:
            test()
            if self.said:
                raise AssertionError(f"said on the console: {self.said}")
        except Exception:
            self.failed.append(name)
            print(f"--- {name}", flush=True)
            traceback.print_exc()
            self.shot(self.page, "failed-" + name.replace(" ", "-"))
        else:
            self.passed += 1
            print(f"ok  {name}", flush=True)

    def shot(self, page, name):
        page.screenshot(path=f"{self.shots}/{name}.png", full_page=True)

    def look(self, name, path, page=None):
        page = page or self.page
        page.goto(path if path.startswith("http") else self.cluster.address(path))
        expect(page.locator("h1")).to_be_visible()
        faults = [fault for fault in Axe().run(page).response["violations"] if fault["impact"] in SERIOUS]
        told = [(fault["id"], [node["html"][:200] for node in fault["nodes"][:3]]) for fault in faults]
        assert not faults, f"axe finds in {name}: {told}"
        self.shot(page, name)

    def files(self, path):
        self.page.goto(self.cluster.address("/files?user.name=" + USER + "&path=" + path))

    def every_page(self):
        for name, path in PAGES.items():
            self.look(name, path)
            assert not self.said, f"{name}: {self.said}"

    def narrow_dark_and_without_script(self):
        looks = {
            "narrow": {"viewport": {"width": 360, "height": 700}},
            "dark": {"color_scheme": "dark"},
            "no-script": {"java_script_enabled": False},
        }
        for kind, options in looks.items():
            context = self.browser.new_context(**options)
            page = self.watched(context)
            for name, path in PAGES.items():
                if kind == "no-script":
                    # axe is a script.
                    page.goto(self.cluster.address(path))
                    expect(page.locator("h1")).to_be_visible()
                    assert page.locator("table, dl, h2").count() > 0, name
                    continue
                self.look(f"{name}-{kind}", path, page)
                wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert wide <= 1, f"{name} is {wide} px wider than a {kind} window"
            context.close()

    def keyboard(self):
        self.page.goto(self.cluster.address("/"))
        self.page.keyboard.press("Tab")
        assert self.page.evaluate("document.activeElement.className") == "skip"
        names = []
        for _ in range(len(PAGES)):
            self.page.keyboard.press("Tab")
            names.append(self.page.evaluate("document.activeElement.textContent"))
        assert "Erasure coding" in names and "Events" in names, names
        self.page.keyboard.press("Enter")
        expect(self.page.locator("h1")).to_have_text("Events")

    def is_live(self):
        self.page.goto(self.cluster.address("/datanodes"))
        expect(self.page.locator("#connection")).to_have_text("live")
        expect(self.page.locator("#nodes .badge.good", has_text="live")).to_have_count(DATANODES)

    def directory(self):
        self.files("/")
        self.page.get_by_label("New directory").fill("coded <b>")
        self.page.get_by_role("button", name="Make").click()
        self.page.get_by_role("link", name="coded <b>/").click()
        expect(self.page.locator("h1")).to_have_text("Files in /coded <b>")
        self.page.get_by_text("Change it").click()
        self.page.get_by_label("Erasure coding of new files").select_option("RS-3-2-1024k")
        form = self.page.locator("form[data-op=SETECPOLICY]")
        with self.page.expect_navigation():
            form.get_by_role("button").click()
        assert "RS-3-2-1024k" in self.cluster.run("ec", "-getPolicy", "-path", "/coded <b>")

    def upload_and_download(self):
        content = bytes(range(256)) * 20_000
        sent = f"{self.cluster.folder}/{NAME}"
        with open(sent, "wb") as file:
            file.write(content)
        self.files("/coded %3Cb%3E")
        self.page.get_by_label("Files to write here").set_input_files(sent)
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="Upload").click()
        self.page.get_by_role("link", name=NAME).click()
        expect(self.page.locator("dd", has_text="5 120 000 bytes".replace(" ", "\u202f"))).to_be_visible()
        with self.page.expect_download() as download:
            self.page.get_by_role("link", name="Download").click()
        got = f"{self.cluster.folder}/got"
        download.value.save_as(got)
        with open(got, "rb") as file:
            assert hashlib.sha256(file.read()).digest() == hashlib.sha256(content).digest()

    def text_at_both_ends(self):
        local = f"{self.cluster.folder}/text"
        with open(local, "w") as file:
            file.write("the first line <script>\n" + "x" * 10_000 + "\nthe last line")
        self.cluster.run("fs", "put", local, "/coded <b>/text")
        self.files("/coded %3Cb%3E/text")
        self.page.get_by_role("button", name="Head").click()
        expect(self.page.locator("#bytes")).to_contain_text("the first line <script>")
        self.page.get_by_role("button", name="Tail").click()
        expect(self.page.locator("#bytes")).to_contain_text("the last line")
        self.look("file", self.page.url)

    def change_and_delete(self):
        self.files("/coded %3Cb%3E/text")
        self.page.get_by_text("Change it").click()
        form = self.page.locator("form[data-op=SETPERMISSION]")
        form.get_by_label("Mode, octal").fill("600")
        with self.page.expect_navigation():
            form.get_by_role("button").click()
        expect(self.page.locator("dd", has_text="-rw-------")).to_be_visible()
        self.page.get_by_text("Change it").click()
        form = self.page.locator("form[data-op=RENAME]")
        form.get_by_label("New path").fill("/coded <b>/moved")
        with self.page.expect_navigation():
            form.get_by_role("button").click()
        self.page.get_by_role("link", name="moved").click()
        self.page.get_by_text("Change it").click()
        self.page.once("dialog", lambda dialog: dialog.accept())
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="Delete").click()
        expect(self.page.get_by_role("link", name=NAME)).to_be_visible()
        expect(self.page.get_by_role("link", name="moved")).to_have_count(0)

    def refusal(self):
        self.files("/")
        self.page.get_by_label("As user").fill("nobody")
        self.page.get_by_role("button", name="Go there").click()
        self.page.get_by_label("New directory").fill("mine")
        self.page.get_by_role("button", name="Make").click()
        expect(self.page.locator("#said")).to_contain_text("Permission denied: user=nobody")
        # The browser tells of each answer that is none of the 200s.
        self.said[:] = [said for said in self.said if "403" not in said]

    def snapshots(self):
        self.cluster.run("fs", "mkdir", "/snapped")
        admin = self.cluster.address(f"/webhdfs/v1/snapped?op=ALLOWSNAPSHOT&user.name={USER}")
        self.page.request.put(admin)
        self.files("/snapped")
        self.page.get_by_text("Change it").click()
        self.page.get_by_label("New snapshot").fill("before")
        form = self.page.locator("form[data-op=CREATESNAPSHOT]")
        with self.page.expect_navigation():
            form.get_by_role("button").click()
        self.page.goto(self.cluster.address("/snapshots"))
        expect(self.page.get_by_role("link", name="/snapped/.snapshot/before")).to_be_visible()

    def datanode(self):
        self.page.goto(self.cluster.address("/datanodes"))
        place = self.page.locator("#nodes td a").first.get_attribute("href")
        self.look("datanode", place)
        expect(self.page.locator(".server")).to_contain_text("Cairn DataNode")
        self.look("datanode-events", place + "events")

    def log_level(self):
        self.page.goto(self.cluster.address("/events"))
        self.page.get_by_label("Lines on standard error from").select_option("INFO")
        self.page.get_by_role("button", name="Change").click()
        expect(self.page.locator("body")).to_contain_text("Effective Level: INFO")

    def dead_and_mended(self):
        """The unit that dies with a DataNode is shown, and rebuilt on another one, while a page looks."""
        where = "/files?user.name=" + USER + "&path=/coded %3Cb%3E/" + "a b %3Ci%3E%26%22' 漢字 %2541%2B;.txt"
        good = "#groups li.good"
        self.page.goto(self.cluster.address(where))
        expect(self.page.locator(good)).to_have_count(5)
        name = self.page.locator(good).first.inner_text()
        port = name.split("127.0.0.1:")[1].split(":")[0]
        dead = self.process_of(port)
        self.page.goto(self.cluster.address("/datanodes"))
        expect(self.page.locator("#connection")).to_have_text("live")
        self.cluster.kill(dead)
        expect(self.page.locator("#nodes .badge.bad", has_text="dead")).to_have_count(1, timeout=60_000)
        self.shot(self.page, "datanode-dead")
        self.page.goto(self.cluster.address("/coding"))
        expect(self.page.locator("#margins")).to_contain_text("all are whole", timeout=90_000)
        mended = self.page.locator("#mending", has_text="since the start")
        self.cluster.until("units are mended", lambda: " 0 since" not in mended.inner_text())
        self.shot(self.page, "mended")
        self.page.goto(self.cluster.address(where))
        expect(self.page.locator(good)).to_have_count(5)
        assert port not in self.page.locator("#groups").inner_text()
        self.shot(self.page, "file-mended")

    def process_of(self, port):
        """The DataNode that takes data at that port."""
        for name, process in self.cluster.processes.items():
            if name.startswith("datanode"):
                inodes = set()
                for link in os.listdir(f"/proc/{process.pid}/fd"):
                    try:
                        inodes.add(os.readlink(f"/proc/{process.pid}/fd/{link}"))
                    except OSError:
                        pass
                with open("/proc/net/tcp") as table:
                    for line in table.readlines()[1:]:
                        fields = line.split()
                        listens = fields[3] == "0A" and int(fields[1].split(":")[1], 16) == int(port)
                        if listens and f"socket:[{fields[9]}]" in inodes:
                            return name
        raise AssertionError(f"nobody listens at {port}")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cairn", required=True)
    options.add_argument("--shots", default=f"{HERE}/target/shots")
    options.add_argument("--only", default="", help="part of a test's name")
    options = options.parse_args()
    os.makedirs(options.shots, exist_ok=True)
    cluster = Cluster(os.path.abspath(options.cairn), f"{HERE}/target/cluster-{os.getpid()}", DATANODES)
    try:
        cluster.until("all DataNodes are there", lambda: f"{DATANODES} live" in cluster.page("/"))
        cluster.run("ec", "-enablePolicy", "-policy", "RS-3-2-1024k")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
            test = Test(browser, cluster, options.shots)
            tests = [test.is_live, test.directory, test.upload_and_download, test.text_at_both_ends,
                     test.change_and_delete, test.refusal, test.snapshots, test.datanode, test.log_level,
                     test.every_page, test.narrow_dark_and_without_script, test.keyboard, test.dead_and_mended]
            for one in tests:
                if options.only in one.__name__:
                    test.check(one.__name__.replace("_", " "), one)
            browser.close()
    finally:
        cluster.stop()
    print(f"{test.passed} passed, {len(test.failed)} failed")
    sys.exit(1 if test.failed else 0)


main()
