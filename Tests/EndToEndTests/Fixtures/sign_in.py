"""What a person does at the admin page, in headless Chromium. Cookies live in PROFILE from one run to the next.

    sign_in.py PROFILE FOLDER sign-in ADMIN-URL CLIENT USER PASSWORD
    sign_in.py PROFILE FOLDER without-script ADMIN-URL CLIENT USER PASSWORD
    sign_in.py PROFILE FOLDER device ADMIN-URL CLIENT USER PASSWORD
    sign_in.py PROFILE FOLDER refreshed ADMIN-URL CLIENT
    sign_in.py PROFILE FOLDER sign-out ADMIN-URL CLIENT
    sign_in.py PROFILE FOLDER pictures ADMIN-URL NAME
    sign_in.py PROFILE FOLDER press ADMIN-URL CLIENT...
    sign_in.py PROFILE FOLDER enrol ADMIN-URL CLIENT [USER PASSWORD]

Prints what it saw, a line each, and exits with 1 and a sentence when something is not as it should be.
"""

import sys
import time

from selenium.common.exceptions import StaleElementReferenceException
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from page_fit import fits

PATIENCE = 30
PRESSES = 21


class Person:
    def __init__(self, profile, folder, admin, scripts=True):
        self.folder, self.admin = folder, admin.rstrip("/")
        options = Options()
        options.binary_location = "/usr/bin/chromium"
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
            "--force-color-profile=srgb", f"--user-data-dir={profile}",
        ):
            options.add_argument(argument)
        if not scripts:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.set_window_size(1280, 900)
        self.addresses = []

    def wait(self, what, condition):
        try:
            return WebDriverWait(self.driver, PATIENCE, poll_frequency=0.1, ignored_exceptions=(Exception,)).until(
                lambda _: condition()
            )
        except Exception:
            self.driver.save_screenshot(f"{self.folder}/failure.png")
            raise SystemExit(f"not seen: {what}, at {self.driver.current_url}:\n{self.driver.page_source[:6000]}")

    def in_row(self, client, use):
        """What `use` makes of the client's row. The page replaces its rows whenever something changes: then once more."""
        for _ in range(20):
            try:
                for row in self.driver.find_elements(By.CSS_SELECTOR, "table.clients tbody tr:not(.note)"):
                    if row.find_element(By.CSS_SELECTOR, ".name").text == client:
                        return use(row)
            except StaleElementReferenceException:
                continue
        raise SystemExit(f"no row for {client}")

    def press(self, client, by, what):
        self.in_row(client, lambda row: row.find_element(by, what).click())
        return True

    def state(self, client):
        return self.in_row(client, lambda row: row.find_element(By.CSS_SELECTOR, ".chip").text)

    def seen(self, client, state):
        self.wait(f"{client} {state}", lambda: self.state(client) == state)
        print("state", state)

    def cell(self, client, label):
        return self.in_row(client, lambda row: row.find_element(By.CSS_SELECTOR, f'[data-label="{label}"]').text)

    def open(self, path="/"):
        self.driver.get(self.admin + path)

    def log_in_at_the_server(self, user, password):
        fields = self.driver.find_elements(By.NAME, "username")
        if fields:
            fields[0].send_keys(user)
            self.driver.find_element(By.NAME, "password").send_keys(password)
            fields[0].submit()
        print("at the server")

    def complaints(self):
        """What the browser itself found wrong, the Content-Security-Policy above all."""
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] in ("SEVERE", "WARNING")]

    def requested(self):
        """Every address that a page asked for."""
        import json

        found = []
        for line in self.driver.get_log("performance"):
            message = json.loads(line["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found


def keeps_focus(person, client):
    """The button keeps the focus, and stays the same element while the page changes around it."""
    if not person.driver.find_elements(By.ID, f"re-{client}"):
        return  # without a refresh token there is nothing to press
    active = "return document.activeElement.id"
    person.driver.execute_script(f"window.pressed = document.getElementById('re-{client}'); window.pressed.focus()")
    person.driver.execute_script("window.pressed.click()")
    person.wait("the outcome", lambda: "has a new token" in person.driver.find_element(By.ID, "notice").text)
    person.wait("the button again", lambda: person.driver.execute_script(
        "return window.pressed.getAttribute('aria-disabled') !== 'true'"))
    if person.driver.execute_script(active) != f"re-{client}":
        raise SystemExit(f"the focus went to {person.driver.execute_script(active)!r}")
    if not person.driver.execute_script(f"return document.getElementById('re-{client}') === window.pressed"):
        raise SystemExit("the button was replaced")
    print("focus kept")


def sign_in(person, client, user, password):
    person.open()
    person.seen(client, "Sign-in needed")
    # One window stays where it is, and is to see by itself what happens in the other.
    person.driver.execute_script("window.stayed = true")
    watching = person.driver.current_window_handle
    person.driver.switch_to.new_window("tab")
    person.open()
    person.wait("the button", lambda: person.press(client, By.LINK_TEXT, "Sign in"))
    person.wait("the server", lambda: not person.driver.current_url.startswith(person.admin))
    person.log_in_at_the_server(user, password)
    person.wait("the server's question", lambda: person.driver.find_element(By.NAME, "allow")).click()
    person.wait("Signed in", lambda: person.driver.find_element(By.TAG_NAME, "h1").text == "Signed in")
    address = person.driver.current_url
    if "code=" in address or "state=" in address or "#" in address:
        raise SystemExit(f"the code stays in the address bar: {address}")
    print("signed in")
    signed_in = person.driver.current_window_handle
    person.driver.switch_to.window(watching)
    person.seen(client, "Ready")
    fits(person.driver)
    print("fits")
    keeps_focus(person, client)
    person.driver.switch_to.window(signed_in)
    # It stays until it is left.
    if person.driver.find_element(By.TAG_NAME, "h1").text != "Signed in":
        raise SystemExit("the page after the sign-in has gone by itself")
    person.driver.find_element(By.LINK_TEXT, "To the overview").click()
    person.wait("the overview", lambda: person.driver.current_url == person.admin + "/")
    # The redirect with the code is not in the history either.
    person.driver.back()
    if "code=" in person.driver.current_url:
        raise SystemExit(f"the code stays in the history: {person.driver.current_url}")
    person.driver.switch_to.window(watching)
    person.seen(client, "Ready")
    if not person.driver.execute_script("return window.stayed === true"):
        raise SystemExit("the page was loaded again")
    print("who", person.cell(client, "Signed in"))
    print("scopes", person.cell(client, "Scopes").replace("\n", " "))


def without_script(person, client, user, password):
    """Reading, signing in and out by links and forms alone."""
    person.open()
    person.seen(client, "Sign-in needed")
    if person.driver.find_elements(By.CSS_SELECTOR, "noscript meta[http-equiv=refresh]") == []:
        raise SystemExit("scripts run")
    person.press(client, By.LINK_TEXT, "Sign in")
    person.log_in_at_the_server(user, password)
    person.wait("the server's question", lambda: person.driver.find_element(By.NAME, "allow")).click()
    person.wait("Signed in", lambda: person.driver.find_element(By.TAG_NAME, "h1").text == "Signed in")
    person.driver.find_element(By.LINK_TEXT, "To the overview").click()
    person.seen(client, "Ready")
    person.press(client, By.XPATH, ".//button[text()='Sign out']")
    person.wait("Signed out", lambda: person.driver.find_element(By.TAG_NAME, "h1").text == "Signed out")
    person.driver.find_element(By.LINK_TEXT, "To the overview").click()
    person.seen(client, "Sign-in needed")


def device(person, client, user, password):
    person.open()
    person.seen(client, "Sign-in needed")
    person.press(client, By.LINK_TEXT, "Sign in")
    code = person.wait("the code", lambda: person.driver.find_element(By.CLASS_NAME, "code")).text
    address = person.driver.find_element(By.CLASS_NAME, "address").get_attribute("href")
    person.driver.find_element(By.CSS_SELECTOR, "svg.qr path")
    print("code", len(code) > 3)
    person.driver.save_screenshot(f"{person.folder}/device.png")
    watching = person.driver.current_window_handle
    person.driver.switch_to.new_window("tab")
    person.driver.get(address)
    person.log_in_at_the_server(user, password)
    field = person.wait("the field for the code", lambda: person.driver.find_element(By.NAME, "user_code"))
    if not field.get_attribute("value"):
        field.send_keys(code)
    field.submit()
    person.wait("the question", lambda: person.driver.find_element(By.CSS_SELECTOR, '[name="action"][value="accept"], [name="allow"]')).click()
    person.driver.switch_to.window(watching)
    person.wait("Signed in", lambda: person.driver.find_element(By.TAG_NAME, "h1").text == "Signed in")
    person.open()
    person.seen(client, "Ready")


def refreshed(person, client):
    person.open()
    person.seen(client, "Ready")
    print("watching", flush=True)
    top = "return document.getElementById('content').getBoundingClientRect().top"
    before = person.driver.execute_script(top)
    person.wait(
        "the refresh", lambda: person.driver.find_element(By.ID, "news").text == f"{client} has a fresh token.")
    if person.driver.execute_script(top) != before:
        raise SystemExit("an event moved the page under a press")
    print("refreshed")


def enrol(person, client, user=None, password=None):
    """Signs in to an API of `client: auto`. Prints the facts of the page before the sign-in."""
    person.open()
    person.seen(client, "Sign-in needed")
    person.press(client, By.LINK_TEXT, "Sign in")
    offer = person.wait("the offer", lambda: person.driver.find_element(By.CLASS_NAME, "offer"))
    names, values = (offer.find_elements(By.TAG_NAME, name) for name in ("dt", "dd"))
    for name, value in zip(names, values):
        print(name.text, value.text)
    fits(person.driver)
    person.driver.find_element(By.ID, "go").click()
    if user:
        person.wait("the server", lambda: not person.driver.current_url.startswith(person.admin))
        person.log_in_at_the_server(user, password)
        person.wait("the server's question", lambda: person.driver.find_element(By.NAME, "allow")).click()
    person.wait("Signed in", lambda: person.driver.find_element(By.TAG_NAME, "h1").text == "Signed in")
    person.driver.find_element(By.LINK_TEXT, "To the overview").click()
    person.seen(client, "Ready")


def sign_out(person, client):
    person.open()
    person.seen(client, "Ready")
    print("who", person.cell(client, "Signed in"))
    person.press(client, By.XPATH, ".//button[text()='Sign out']")
    person.wait("what became of it", lambda: "has revoked" in person.driver.find_element(By.ID, "notice").text)
    print("notice", person.driver.find_element(By.ID, "notice").text.replace("\n", " "))
    person.seen(client, "Sign-in needed")


def press(person, *clients):
    """Presses buttons that were found once. A button that the page has replaced is stale, and the press fails."""
    person.open()
    for client in clients:
        person.seen(client, "Ready")
    buttons = [person.driver.find_element(By.ID, f"re-{client}") for client in clients]
    for number in range(PRESSES):
        button, deadline = buttons[number % len(buttons)], time.monotonic() + PATIENCE
        while button.get_attribute("aria-disabled") == "true":
            if time.monotonic() > deadline:
                raise SystemExit(f"press {number}: the button stays disabled")
            time.sleep(0.02)
        button.click()
    person.wait("the last outcome", lambda: all(button.get_attribute("aria-disabled") != "true" for button in buttons))
    print("pressed", PRESSES)


def pictures(person, name):
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            person.driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            metrics = {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": width < 500}
            person.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            person.open()
            person.wait("the page", lambda: person.driver.find_element(By.TAG_NAME, "h1"))
            wide = person.driver.execute_script("return document.documentElement.scrollWidth")
            if wide > width:
                raise SystemExit(f"{scheme} {width}: the page is {wide} wide")
            metrics["height"] = max(500, person.driver.execute_script("return document.documentElement.scrollHeight"))
            person.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            person.driver.save_screenshot(f"{person.folder}/{name}-{scheme}-{width}.png")
            print("picture", scheme, width)


profile, folder, what, admin, *rest = sys.argv[1:]
person = Person(profile, folder, admin, scripts=what != "without-script")
try:
    {"sign-in": sign_in, "without-script": without_script, "device": device, "refreshed": refreshed, "sign-out": sign_out,
     "pictures": pictures, "press": press, "enrol": enrol}[what](person, *rest)
    for complaint in person.complaints():
        print("complaint", complaint)
    for address in person.requested():
        if not address.startswith(("data:", "about:", "chrome:")):
            print("asked", address.split("?")[0])
finally:
    person.driver.quit()
