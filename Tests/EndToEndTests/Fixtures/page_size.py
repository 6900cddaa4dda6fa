"""How large the admin page is, in headless Chromium.

    page_size.py PROFILE FOLDER ADMIN-URL

For a telephone (390 x 844) and a wide screen (1280 x 800) one line: the name, the page's width and height, and how far it
can be scrolled sideways. Then a line `cut` for each element whose text does not fit into it, on any of the two, folded
parts being opened. Then `folded`: all text of the telephone's page as it is without opening anything, and `whole`: with
everything opened. `reddish` and a client's name for each client whose visible text has the colour of failures. `fits` when
no width needs sideways scrolling or has a small target. `kept` when all rows are the same elements after the page has taken
a new state. Pictures go to FOLDER.
"""

import base64
import sys

from selenium.webdriver.support.ui import WebDriverWait

from chromium import chromium
from page_fit import fits

# Text that is there and can't be seen: wider than what shows it.
CUT = """
return Array.from(document.querySelectorAll("main *")).filter((place) => {
  const style = getComputedStyle(place);
  if (place.closest(".unseen") || place.closest("thead")) return false;
  return (style.overflowX !== "visible" && place.scrollWidth > place.clientWidth + 1) ||
    (style.overflowY === "hidden" && place.scrollHeight > place.clientHeight + 1) ||
    place.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map((place) => `${place.tagName}.${place.className}: ${place.textContent.trim().slice(0, 60)}`);
"""
# Open parts stay open while the page is fetched again.
OPEN = "for (const fold of document.querySelectorAll('details')) fold.open = true;"
REDDISH = """
const red = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
const probe = document.body.appendChild(document.createElement("span"));
probe.style.color = red;
const wanted = getComputedStyle(probe).color;
probe.remove();
return Array.from(document.querySelectorAll("table.clients tbody tr:not(.note)")).filter((row) => {
  const next = row.nextElementSibling;
  const rows = next && next.classList.contains("note") ? [row, next] : [row];
  return rows.some((row) => Array.from(row.querySelectorAll("*")).some((place) =>
    place.checkVisibility() && place.innerText && getComputedStyle(place).color === wanted));
}).map((row) => row.querySelector(".name").textContent);
"""

# The mark is gone once the page has taken a new state.
TAKE = """
window.rows = Array.from(document.querySelectorAll("tbody tr"));
document.querySelector("section.summary").dataset.old = "";
document.dispatchEvent(new Event("visibilitychange"));
"""
TAKEN = "return !document.querySelector('[data-old]')"
KEPT = """
const rows = Array.from(document.querySelectorAll("tbody tr"));
return rows.length === window.rows.length && rows.every((row, place) => row === window.rows[place]);
"""


def resize(driver, width, height):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})


def picture(driver, path):
    image = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    with open(path, "wb") as file:
        file.write(base64.b64decode(image["data"]))


def main():
    profile, folder, admin = sys.argv[1:]
    driver = chromium(profile)
    try:
        for name, width, height in (("telephone", 390, 844), ("wide", 1280, 800)):
            resize(driver, width, height)
            driver.get(admin)
            root = "document.documentElement"
            size = driver.execute_script(
                f"return [{root}.scrollWidth, {root}.scrollHeight, {root}.scrollWidth - {root}.clientWidth]")
            print(name, *size)
            picture(driver, f"{folder}/{name}.png")
            if name == "telephone":
                print("folded", " ".join(driver.execute_script("return document.body.innerText").split()))
                for client in driver.execute_script(REDDISH):
                    print("reddish", client)
            driver.execute_script(OPEN)
            if name == "telephone":
                print("whole", " ".join(driver.execute_script("return document.body.innerText").split()))
                picture(driver, f"{folder}/{name}-open.png")
            for line in driver.execute_script(CUT):
                print("cut", name, " ".join(line.split()))
        fits(driver)
        print("fits")
        driver.execute_script(TAKE)
        WebDriverWait(driver, 30).until(lambda _: driver.execute_script(TAKEN))
        print("kept" if driver.execute_script(KEPT) else "rows moved")
    finally:
        driver.quit()


main()
