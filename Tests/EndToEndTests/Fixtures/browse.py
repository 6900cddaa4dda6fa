"""Steps of a person in headless Chromium.

    browse.py PROFILE STEP...

Each step is VERB:ARGUMENT. Prints a line for each `tell` and `post`, then a line `complaint …` for each error in the
browser's console. Exits with 1 and the page when a step can't be done.

    open:URL            types an address
    click:TEXT          presses the link or button with this text
    type:NAME=VALUE     fills in the field
    see:TEXT            waits for the text on the page
    at:PREFIX           waits for an address that begins so
    not:TEXT            fails if the page has the text
    cookies:COUNTxSIZE  stores cookies of another program on this host
    post:PATH           sends a form of the current page, with its token, and tells where the browser ends
    tell:SCRIPT         tells the value of an expression
    size:WIDTHxHEIGHT   changes the window
    media:NAME=VALUE    changes a media feature, such as prefers-color-scheme
    early:SCRIPT        runs at the beginning of each page from now on
    until:SCRIPT        waits until an expression is true
    contrast:           fails if text has less contrast than WCAG 2.2 AA wants
"""

import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 45

POST = """
const form = document.createElement("form");
form.method = "post";
form.action = arguments[0];
const field = document.createElement("input");
field.name = "csrf";
const token = document.querySelector("[name=csrf]");
field.value = token ? token.value : "";
form.append(field);
document.body.append(form);
window.stays = true;
HTMLFormElement.prototype.submit.call(form);
"""


CONTRAST = """
const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const light = (color) => color.slice(0, 3).map((part) => part / 255)
  .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = rgb(getComputedStyle(at).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return rgb(getComputedStyle(document.documentElement).colorScheme === "dark" ? "rgb(0, 0, 0)" : "rgb(255, 255, 255)");
};
const weak = [];
for (const element of document.querySelectorAll("body *")) {
  const text = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.nodeValue.trim());
  if (!text || !element.checkVisibility() || element.closest("svg")) continue;
  const style = getComputedStyle(element);
  const [one, other] = [light(rgb(style.color)), light(behind(element))].sort((a, b) => b - a);
  const large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700;
  const ratio = (one + 0.05) / (other + 0.05);
  if (ratio < (large ? 3 : 4.5)) weak.push(`${ratio.toFixed(2)} ${element.className} ${element.textContent.trim().slice(0, 40)}`);
}
return weak;
"""


def start(profile):
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
        "--ignore-certificate-errors", "--host-resolver-rules=MAP *.test 127.0.0.1", f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


driver = start(sys.argv[1])


def text():
    return driver.find_element(By.TAG_NAME, "body").text


def wait(condition):
    return WebDriverWait(driver, PATIENCE, poll_frequency=0.05, ignored_exceptions=(Exception,)).until(
        lambda _: condition())


def named(name):
    for target in driver.find_elements(By.CSS_SELECTOR, "a, button"):
        if target.is_displayed() and target.text.strip() == name:
            return target
    return None


def click(name):
    wait(lambda: named(name)).click()


def fill(argument):
    name, value = argument.split("=", 1)
    wait(lambda: driver.find_element(By.NAME, name)).send_keys(value)


def absent(words):
    if words in text():
        raise AssertionError(f"{words!r} is there")


def store(argument):
    count, size = map(int, argument.split("x"))
    for number in range(count):
        driver.add_cookie({"name": f"other{number}", "value": "x" * size, "path": "/"})


def post(path):
    driver.execute_script(POST, path)
    wait(lambda: driver.execute_script("return window.stays !== true && document.readyState === 'complete'"))
    print("posted", path, driver.current_url, flush=True)


def resize(argument):
    width, height = map(int, argument.split("x"))
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def emulate(argument):
    name, value = argument.split("=", 1)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": name, "value": value}]})


def measure(_):
    if weak := driver.execute_script(CONTRAST):
        raise AssertionError(weak)


VERBS = {
    "early": lambda script: driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script}),
    "until": lambda script: wait(lambda: driver.execute_script("return " + script)),
    "media": emulate, "contrast": measure,
    "open": driver.get, "click": click, "type": fill, "not": absent, "cookies": store, "post": post, "size": resize,
    "see": lambda words: wait(lambda: words in text()),
    "at": lambda prefix: wait(lambda: driver.current_url.startswith(prefix)),
    "tell": lambda script: print("told", driver.execute_script("return " + script), flush=True),
}

try:
    for step in sys.argv[2:]:
        verb, argument = step.split(":", 1)
        try:
            VERBS[verb](argument)
        except Exception as error:
            complaints = [line["message"] for line in driver.get_log("browser")]
            raise SystemExit(f"{step}: {type(error).__name__} {error} at {driver.current_url}: {complaints}\n{text()}") from error
    for line in driver.get_log("browser"):
        if line["level"] in ("SEVERE", "WARNING") and "Failed to load resource" not in line["message"]:
            print("complaint", line["message"])
finally:
    driver.quit()
