"""Whether a page fits into windows of many widths."""

SMALL = """
return Array.from(document.querySelectorAll("a, button, summary, input")).filter((target) => {
  const box = target.getBoundingClientRect();
  return target.checkVisibility() && box.width > 1 && (box.width < 24 || box.height < 24) && !target.matches(".skip");
}).map((target) => `${target.tagName} ${target.textContent}`);
"""


def fits(driver):
    """Raises when a width needs sideways scrolling or has a target below 24 px."""
    for width in range(320, 1616, 16):
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        if wide > width:
            raise SystemExit(f"at {width} the page is {wide} wide")
        if small := driver.execute_script(SMALL):
            raise SystemExit(f"at {width} these are small: {small}")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
