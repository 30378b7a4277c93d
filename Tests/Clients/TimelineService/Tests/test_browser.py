"""Two windows of a real browser, on two services over one store, and a server that is stopped and started again.

    python3 -m unittest --quiet test_browser

needs Chromium with its driver, selenium, and what the server needs. In the environment, `SERVICE` is the path of the
built service, and `SCREENSHOTS` a folder for a picture of each step. Without a browser the test is skipped, unless
`MOMENTS_REQUIRE_BROWSER` is 1.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import unittest

import programs

IS_REQUIRED = os.environ.get("MOMENTS_REQUIRE_BROWSER") == "1"

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
REASON = "There is no Chromium with its driver, or no selenium."

SHORTLY = 1.0
"""The number of seconds within which a like in one window must show in the other."""


class Window:
    """A window of the browser that shows a service's page."""

    def __init__(self, address: str, name: str, pictures: pathlib.Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=720,1000"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self._name = name
        self._pictures = pictures
        self._driver.get(address)

    def like(self, moment: str) -> None:
        self._driver.find_element(By.CSS_SELECTOR, f"#moment-{moment} button").click()

    def button(self, moment: str) -> str:
        """The text of a moment's button; empty while there is none."""
        return self._driver.execute_script(
            "return document.querySelector(arguments[0])?.textContent ?? ''", f"#moment-{moment} button"
        )

    def status(self) -> str:
        return self._driver.execute_script("return document.getElementById('status').textContent")

    def wait(self, moment: str, text: str, seconds: float = programs.LONGEST_WAIT) -> None:
        """Waits until a moment's button has a text."""
        programs.wait_until(
            lambda: self.button(moment) == text, f"the button of moment {moment} in the {self._name} window says {text!r}",
            seconds)

    def picture(self, step: str) -> None:
        self._driver.save_screenshot(str(self._pictures / f"{step}-{self._name}.png"))

    def faults(self) -> list[str]:
        """The errors of the page's script; a lost connection isn't one."""
        return [entry["message"] for entry in self._driver.get_log("browser") if entry["source"] == "javascript"]

    def close(self) -> None:
        self._driver.quit()


@unittest.skipIf(not IS_REQUIRED and (webdriver is None or BROWSER is None or DRIVER is None), REASON)
class BrowserTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        pictures = pathlib.Path(os.environ.get("SCREENSHOTS", folder))
        pictures.mkdir(parents=True, exist_ok=True)
        self.server = programs.server(programs.free_port(), folder / "state")
        upstream = f"{self.server.address}/graphql"
        self.services = [programs.service(programs.free_port(), f"file:{folder / 'store'}", upstream) for _ in range(2)]
        for program in [self.server, *self.services]:
            self.addCleanup(program.stop)
            program.start()
        self.windows = []
        for service, name in zip(self.services, ["first", "second"]):
            self.windows.append(Window(service.address, name, pictures))
            self.addCleanup(self.windows[-1].close)

    def picture(self, step: str) -> None:
        for window in self.windows:
            window.picture(step)

    def test_two_windows_agree_whatever_stops(self) -> None:
        first, second = self.windows
        for window in self.windows:
            window.wait("1", "♡ 1")
            window.wait("7", "♡ 0")
        self.picture("1-opened")

        first.like("1")
        first.wait("1", "♥ 2")
        second.wait("1", "♥ 2", SHORTLY)
        self.picture("2-liked")

        self.assertEqual(self.server.stop(), 0)
        first.like("7")
        first.wait("7", "♥ 1 waiting")
        second.wait("7", "♥ 1 waiting", SHORTLY)
        self.assertEqual(first.status(), "Live · 1 like waits")
        self.picture("3-waits-without-the-server")

        self.assertEqual(self.services[0].stop(), 0)
        second.wait("7", "♥ 1 waiting")
        second.like("1")
        second.wait("1", "♡ 1 waiting")
        self.picture("4-one-service-alone")

        self.services[0].start()
        first.wait("1", "♡ 1 waiting")
        first.wait("7", "♥ 1 waiting")
        self.assertEqual(first.status(), "Live · 2 likes wait")
        self.picture("5-both-services-again")

        self.server.start()
        for window in self.windows:
            window.wait("7", "♥ 1")
            window.wait("1", "♡ 1")
            self.assertEqual(window.status(), "Live")
        self.picture("6-sent")

        self.assertEqual(
            [(like["variables"]["momentID"], like["variables"]["isLiked"]) for like in programs.likes(self.server)],
            [("1", True), ("7", True), ("1", False)])
        for window in self.windows:
            self.assertEqual(window.faults(), [])


if __name__ == "__main__":
    unittest.main()
