"use strict";
(() => {
  // Path before all paths of the page, behind a front.
  const root = new URL(".", document.currentScript.src).pathname;
  const byId = (id) => document.getElementById(id);

  // Formats a duration as the server does: 3 s, 4 min 10 s, 2 h 5 min, 3 d 4 h.
  const words = (seconds) => {
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const whole = Math.max(0, Math.floor(seconds));
    const first = units.findIndex(([size]) => whole >= size);
    if (first < 0) return "0 s";
    let text = `${Math.floor(whole / units[first][0])} ${units[first][1]}`;
    if (first + 1 < units.length) {
      const rest = Math.floor((whole % units[first][0]) / units[first + 1][0]);
      if (rest > 0) text += ` ${rest} ${units[first + 1][1]}`;
    }
    return text;
  };
  let drawnAt = performance.now();
  const count = () => {
    const passed = (performance.now() - drawnAt) / 1000;
    for (const place of document.querySelectorAll("[data-countdown]")) {
      place.textContent = words(Number(place.dataset.countdown) - passed);
    }
  };
  setInterval(count, 1000);

  // Changes `place` to look like `wanted`. Elements in both are kept, so they keep the focus and a click in progress.
  const become = (place, wanted) => {
    const named = new Map(Array.from(place.children, (child) => [child.id, child]));
    let at = place.firstChild;
    for (const next of Array.from(wanted.childNodes)) {
      const kept = next.id ? named.get(next.id) : at && !at.id ? at : null;
      named.delete(next.id);
      if (!kept || kept.nodeName !== next.nodeName) { place.insertBefore(next, at); continue; }
      if (kept === at) at = at.nextSibling; else place.insertBefore(kept, at);
      if (kept.nodeType !== Node.ELEMENT_NODE) { kept.nodeValue = next.nodeValue; continue; }
      for (const { name, value } of next.attributes) if (kept.getAttribute(name) !== value) kept.setAttribute(name, value);
      // A fold that a person has opened stays open.
      for (const { name } of Array.from(kept.attributes)) if (!next.hasAttribute(name) && name !== "open") kept.removeAttribute(name);
      become(kept, next);
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  };
  // Updates the element with this id to the server's HTML.
  const take = (html, id) => {
    const found = new DOMParser().parseFromString(html, "text/html").getElementById(id);
    const place = byId(id);
    if (!found || !place) return false;
    const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
    become(place, found);
    drawnAt = performance.now();
    if (focused && !place.contains(document.activeElement)) {
      const again = byId(focused) || byId("content");
      if (again) again.focus({ preventScroll: true });
    }
    return true;
  };

  // Converts the server's times from UTC to the browser's time zone.
  function localTimes() {
    for (const place of document.querySelectorAll("[data-until]")) {
      const time = new Date(place.dataset.until);
      const two = (number) => `${number}`.padStart(2, "0");
      const day = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
      // The day, too: it may be another one here.
      const local = (day(time) === day(new Date()) ? "" : day(time) + " ") + `${two(time.getHours())}:${two(time.getMinutes())}`;
      place.textContent = place.textContent.replace(/(\d{4}-\d\d-\d\d )?\d\d:\d\d UTC/, local);
    }
  }

  const kind = document.body.dataset.kind;
  if (kind === "requests") requests();
  if (kind === "overview") overview();
  if (kind === "device") device();
  if (kind === "callback") callback();

  function overview() {
    const notice = byId("notice");
    const connection = byId("connection");
    // Shows the outcome of the last pressed button, until another button is pressed.
    let quietUntil = 0;
    const say = (text, failed) => {
      quietUntil = performance.now() + 5000;
      notice.textContent = text;
      notice.classList.toggle("bad", Boolean(failed));
    };
    // Shows an event in a fixed place, so that buttons don't move. Leaves out the events that a pressed button causes.
    const news = byId("news");
    let fading = 0;
    const tell = (text) => {
      if (performance.now() < quietUntil) return;
      news.textContent = text;
      clearTimeout(fading);
      fading = setTimeout(() => { news.textContent = ""; }, 10000);
    };
    // Offers to forget the tokens locally, beside the outcome of a failed sign-out.
    const offerForgetting = (form) => {
      const again = form.cloneNode(true);
      const local = document.createElement("input");
      local.type = "hidden";
      local.name = "local";
      local.value = "true";
      again.append(local);
      const button = again.querySelector("button");
      button.textContent = "Forget here";
      button.className = "button main";
      button.removeAttribute("aria-disabled");
      button.removeAttribute("id");
      button.setAttribute("aria-label", "Forget here: " + form.action.split("/").pop());
      notice.append(again);
    };
    // Shows the copy buttons, which only work with this script.
    const showCopying = () => {
      if (!navigator.clipboard) return;
      for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
    };
    showCopying();
    document.addEventListener("click", async (event) => {
      const button = event.target.closest ? event.target.closest("[data-copy]") : null;
      if (!button) return;
      try {
        await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
        button.textContent = "Copied";
      } catch { button.textContent = "Select it"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    let running = false;
    let again = false;
    const refresh = async () => {
      if (running) { again = true; return; }
      running = true;
      try {
        const answer = await fetch(root + "fragment", { headers: { Accept: "text/html" }, cache: "no-store" });
        if (answer.status === 401) { location.reload(); return; }
        if (answer.ok) {
          take(`<div id="live">${await answer.text()}</div>`, "live");
          showCopying();
          lost(false);
        }
      } catch { lost(true); }
      running = false;
      if (again) { again = false; setTimeout(refresh, 250); }
    };
    const lost = (isLost) => {
      if (connection.hidden !== isLost) return;
      connection.hidden = !isLost;
      connection.textContent = isLost ? "The proxy can’t be reached. Trying again." : "";
    };
    const sentences = {
      token_acquired: (event) => `${event.client} has a token.`,
      token_refreshed: (event) => `${event.client} has a fresh token.`,
      token_lost: (event) => event.reason === "expired" ? "" : `${event.client} has lost its token.`,
      token_failed: (event) => `${event.client}: ${event.message}.`,
      needs_authentication: (event) => `${event.client} needs a sign-in.`,
    };
    const events = new EventSource(root + "events");
    for (const name of Object.keys(sentences)) {
      events.addEventListener(name, (message) => {
        try { const text = sentences[name](JSON.parse(message.data)); if (text) tell(text); } catch { /* not ours */ }
        refresh();
      });
    }
    events.addEventListener("open", () => { lost(false); refresh(); });
    // There may only be too many readers: the page asks then.
    events.addEventListener("error", refresh);
    setInterval(() => { if (!document.hidden) refresh(); }, 5000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

    // Buttons act without leaving the page.
    document.addEventListener("submit", async (event) => {
      const form = event.target;
      if (!(form instanceof HTMLFormElement) || form.method !== "post") return;
      event.preventDefault();
      // Not `disabled`: a disabled button loses the focus.
      const buttons = Array.from(form.querySelectorAll("button"));
      if (buttons.some((button) => button.getAttribute("aria-disabled") === "true")) return;
      for (const button of buttons) button.setAttribute("aria-disabled", "true");
      try {
        const answer = await fetch(form.action, {
          method: "POST", headers: { Accept: "text/plain" }, body: new URLSearchParams(new FormData(form)),
        });
        say((await answer.text()).trim(), !answer.ok);
        if (!answer.ok && answer.status !== 403 && new URL(form.action).pathname.startsWith(root + "logout/")
            && !form.querySelector("[name=local]")) offerForgetting(form);
      } catch { say("The proxy can’t be reached. The outcome of this action is unknown.", true); }
      refresh();
    });
  }

  function device() {
    const ask = async () => {
      if (!document.querySelector("#device .code")) return;
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
        const html = await answer.text();
        if (html.includes('class="code"')) { setTimeout(ask, 2000); return; }
        const page = new DOMParser().parseFromString(html, "text/html");
        document.title = page.title;
        byId("content").replaceChildren(...page.getElementById("content").childNodes);
        byId("content").focus();
      } catch { setTimeout(ask, 4000); }
    };
    setTimeout(ask, 2000);
  }

  // Shows the last requests as they end.
  function requests() {
    setInterval(async () => {
      if (document.hidden) return;
      try {
        const answer = await fetch(root + "requests/fragment", { headers: { Accept: "text/html" }, cache: "no-store" });
        if (answer.ok) take(`<div id="live">${await answer.text()}</div>`, "live");
      } catch { /* The next attempt is in two seconds. */ }
    }, 2000);
  }

  // Removes the server's answer from the address bar and the history. If the proxy asks for the fragment (behind #),
  // sends it, because browsers do not send fragments.
  async function callback() {
    localTimes();
    const fragment = location.hash.slice(1);
    const target = location.pathname + location.search;
    // Keeps the state in the address, so that the page can be loaded again.
    const state = new URLSearchParams(fragment || location.search).get("state");
    history.replaceState(null, "", location.pathname + (state ? "?done=" + encodeURIComponent(state) : ""));
    const handOver = byId("outcome").dataset.fragment !== undefined;
    if (!handOver) return;
    const outcome = byId("outcome");
    try {
      const answer = await fetch(target, {
        method: "POST", headers: { Accept: "text/html", "Content-Type": "text/plain" }, body: fragment,
      });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.title = page.title;
      byId("content").replaceChildren(...page.getElementById("content").childNodes);
      byId("content").focus();
      localTimes();
    } catch { outcome.textContent = "The proxy can’t be reached. Sign in again."; }
  }
})();
