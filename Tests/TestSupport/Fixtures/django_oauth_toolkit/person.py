"""A person at a browser, as far as the server's pages need one: logs in as ada, and allows or denies the request.

    person.py authorize URL [deny]       # prints the address to which the server redirects the browser
    person.py device URI CODE [deny]
"""

import re
import sys
from urllib.parse import urljoin

import requests

session = requests.Session()
session.trust_env = False


def form(response, button, **fields):
    """Sends the page's form with its hidden fields."""
    hidden = {}
    for tag in re.findall(r"<input[^>]*>", response.text):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and 'type="hidden"' in tag:
            text = value.group(1) if value else ""
            hidden[name.group(1)] = text.replace("&quot;", '"').replace("&#x27;", "'").replace("&amp;", "&")
    return session.post(
        response.url, data={**hidden, **fields, **button}, headers={"Referer": response.url}, allow_redirects=False
    )


def follow(response):
    """Follows redirects on this server. Returns the first address elsewhere, or the last answer."""
    while response.is_redirect:
        address = urljoin(response.url, response.headers["Location"])
        if not address.startswith(HOME):
            return address
        response = session.get(address, allow_redirects=False)
    return response


def page(address):
    response = follow(session.get(address, allow_redirects=False))
    if not isinstance(response, str) and "/accounts/login/" in response.url:
        response = follow(form(response, {}, username="ada", password="ada's password"))
    return response


what, address, *rest = sys.argv[1:]
HOME = "/".join(address.split("/")[:3]) + "/"
refuses = "deny" in rest
result = page(address)
if what == "device":
    result = follow(form(result, {}, user_code=rest[0]))
    result = follow(form(result, {"action": "deny" if refuses else "accept"}))
elif not isinstance(result, str):
    result = follow(form(result, {} if refuses else {"allow": "Authorize"}))
print(result if isinstance(result, str) else f"{result.status_code} {result.url}\n{result.text}")
