"""Web pages that try to use a listener of this machine, in a real Chromium.

Arguments: NAME=URL of each listener, and `own=URL` of one whose answers may run as a page there, which is what a page
has after it has bound its name anew. Everything is tried for each URL at the path /NAME/ATTEMPT. One line for each
attempt that the browser has come back from: what became of it is for the listener to say.
"""

import http.server
import shutil
import sys
import tempfile
import threading
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.common.exceptions import WebDriverException

# A script calls its last argument when it is done, with the names of its attempts.
TRY_ALL = r"""
const [base, done] = arguments;
const tried = [];
const settled = [];
function attempt(name, run) {
    settled.push(new Promise((resolve) => {
        setTimeout(resolve, 4000);
        tried.push(name);
        try { run(base + '/' + name, resolve); } catch (error) { resolve(); }
    }));
}
function element(tag, attributes, parent) {
    const it = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) it[key] = value;
    (parent || document.body).append(it);
    return it;
}
function loaded(name, tag, attribute, more) {
    attempt(name, (url, over) => element(tag, { onload: over, onerror: over, [attribute]: url, ...more }));
}
function fetched(name, options) {
    attempt(name, (url, over) => fetch(url, { credentials: 'include', ...options }).then(over, over));
}
function sent(name, method, more, sandbox) {
    attempt(name, (url, over) => {
        const frame = element('iframe', { name: 'frame-' + name });
        const form = element('form', { method, action: url, target: frame.name, ...more });
        element('input', { type: 'hidden', name: 'amount', value: '1000' }, form);
        form.submit();
        // The first load may be that of the empty frame.
        frame.onload = () => setTimeout(over, 500);
    });
}

fetched('fetch', { mode: 'no-cors' });
fetched('fetch-post', { mode: 'no-cors', method: 'POST', body: 'amount=1000' });
fetched('fetch-cors', {});
fetched('fetch-simple-headers', {
    method: 'POST', body: '{"amount": 1000}',
    headers: { 'Accept': 'application/json', 'Accept-Language': 'tlh', 'Content-Type': 'text/plain' },
});
fetched('fetch-anonymous', { mode: 'no-cors', credentials: 'omit', referrerPolicy: 'no-referrer' });
fetched('fetch-keepalive', { mode: 'no-cors', method: 'POST', keepalive: true, body: 'x' });
fetched('fetch-own-header', { headers: { 'X-Mine': '1' } });
fetched('fetch-own-agent', { headers: { 'User-Agent': 'curl/8.0' } });
fetched('fetch-delete', { method: 'DELETE' });
attempt('xhr', (url, over) => {
    const request = new XMLHttpRequest();
    request.onloadend = over;
    request.open('GET', url);
    request.send();
});
attempt('beacon', (url, over) => { navigator.sendBeacon(url, 'amount=1000'); over(); });
attempt('event-source', (url, over) => { const s = new EventSource(url); s.onerror = () => { s.close(); over(); }; });
attempt('websocket', (url, over) => {
    const socket = new WebSocket(url.replace('http:', 'ws:'));
    socket.onopen = socket.onerror = over;
});
loaded('img', 'img', 'src');
loaded('img-no-referrer', 'img', 'src', { referrerPolicy: 'no-referrer' });
loaded('img-anonymous', 'img', 'src', { crossOrigin: 'anonymous' });
loaded('script', 'script', 'src');
loaded('style', 'link', 'href', { rel: 'stylesheet' });
loaded('prefetch', 'link', 'href', { rel: 'prefetch' });
loaded('object', 'object', 'data');
loaded('embed', 'embed', 'src');
loaded('iframe', 'iframe', 'src');
loaded('iframe-sandbox', 'iframe', 'src', { sandbox: 'allow-scripts' });
attempt('video', (url, over) => element('video', { onerror: over, src: url, preload: 'auto' }));
attempt('css', (url, over) => {
    element('style', { textContent: `body { background-image: url(${url}); }` });
    setTimeout(over, 2000);
});
sent('form-post', 'post');
sent('form-get', 'get');
sent('form-text', 'post', { enctype: 'text/plain' });
attempt('form-without-origin', (url, over) => {
    const page = `<form method=post action="${url}"><input name=a value=b></form><script>document.forms[0].submit()</` +
        'script>';
    element('iframe', { sandbox: 'allow-scripts allow-forms', srcdoc: page });
    setTimeout(over, 2000);
});
attempt('meta-refresh', (url, over) => {
    element('iframe', { srcdoc: `<meta http-equiv=refresh content="0; url=${url}">` });
    setTimeout(over, 2000);
});
attempt('data-page', (url, over) => {
    element('iframe', { src: `data:text/html,<img src="${url}">` });
    setTimeout(over, 2000);
});
attempt('ping', (url, over) => {
    element('a', { href: '#', ping: url, textContent: 'x' }).click();
    setTimeout(over, 2000);
});
Promise.all(settled).then(() => done(tried));
"""

# From a document that has the listener's own name and port: to a browser all of this is one origin.
TRY_AS_OWN = r"""
const done = arguments[arguments.length - 1];
const tries = {
    'own-fetch': {},
    'own-post': { method: 'POST', body: 'amount=1000' },
    'own-json': { method: 'PUT', body: '{}', headers: { 'Content-Type': 'application/json', 'X-Mine': '1' } },
};
const here = '/' + location.pathname.split('/')[1] + '/';
Promise.allSettled(Object.entries(tries).map(([name, options]) => fetch(here + name, options)))
    .then(() => done(Object.keys(tries)));
"""


class Pages(http.server.BaseHTTPRequestHandler):
    """The attacker's site: an empty page, and redirects wherever it is told."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", urllib.parse.parse_qs(url.query)["to"][0])
            body = b""
        else:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            body = b"<!doctype html><title>page</title><body>"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def browser(folder):
    options = Options()
    options.binary_location = shutil.which("chromium")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
        "--disable-background-networking", "--disable-component-update", "--no-first-run",
        # All names lead here. The checks of newer browsers for local addresses are not tested.
        "--host-resolver-rules=MAP *.test 127.0.0.1",
        "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,HttpsUpgrades,"
        "HttpsFirstBalancedModeAutoEnable",
        f"--user-data-dir={folder}",
    ):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(60)
    driver.set_page_load_timeout(30)
    return driver


def visit(driver, url):
    try:
        driver.get(url)
    except WebDriverException:
        pass  # A download, or a connection that was closed.


def try_all(driver, site, name, url):
    page = f"{site}/page"
    base = f"{url}/{name}"
    tried = []
    if name != "own":
        driver.get(page)
        tried += driver.execute_async_script(TRY_ALL, base)
        # Navigations: a link, a form, a redirect, and a window that another program opened.
        driver.get(page)
        driver.execute_script("location = arguments[0]", f"{base}/navigate")
        driver.get(page)
        driver.execute_script(
            "const f = document.createElement('form'); f.method = 'post'; f.action = arguments[0];"
            "document.body.append(f); f.submit()", f"{base}/navigate-post")
        driver.get(page)
        visit(driver, f"{site}/redirect?to={urllib.parse.quote(base)}/redirected")
        tried += ["navigate", "navigate-post", "redirected"]
    else:
        visit(driver, f"{base}/document")
        tried += ["document"] + driver.execute_async_script(TRY_AS_OWN)
    return tried


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://evil.test:{server.server_port}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        driver = browser(folder)
        try:
            for argument in sys.argv[1:]:
                name, url = argument.split("=", 1)
                for attempt in try_all(driver, site, name, url):
                    print(f"/{name}/{attempt}", flush=True)
        finally:
            driver.quit()


main()
