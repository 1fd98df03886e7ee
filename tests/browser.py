"""A real browser for pages that are opened from disk: Debian's chromium, driven by selenium."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from selenium import webdriver

# Without a sandbox, since tests run as root in containers; without what a browser asks for on its own behalf.
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
]  # fmt: skip


def installed(program: str) -> str:
    """Where the program is; a test that needs it fails without it."""
    path = shutil.which(program)
    if path is None:
        pytest.fail(
            f"{program} is not installed: `make browser`, or as root `apt-get install chromium chromium-driver`.", False
        )
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One chromium for all tests of a file, with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = installed("chromium")
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The path of the driver is given: selenium would look for one on the network.
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=installed("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser):
    """`open_page(path, width, height, scheme)` shows a file and returns the driver, whose logs begin with that page."""

    def show(path: Path, width: int = 1280, height: int = 900, scheme: str = "light"):
        browser.get("about:blank")  # the page before need not be drawn in another size
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        messages(browser), requests(browser)  # what the page before it left
        browser.get(path.as_uri())
        return browser

    return show


def messages(driver) -> list[str]:
    """What the console has said since the last call, warnings and errors of the page among it."""
    return [entry["message"] for entry in driver.get_log("browser")]


def requests(driver) -> list[str]:
    """Every address that the page has asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
