"use strict";
(() => {
  const message = document.getElementById("message");
  const STALE = "This page is no longer up to date";

  const say = (text, bad = false) => {
    message.textContent = text;
    message.classList.toggle("bad", bad);
  };

  // Links into Airflow open in Airflow, not in the frame in which it shows this page.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-airflow]");
    if (!link || window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const outside = window.parent.document.createElement("a");
    outside.href = link.href;
    window.parent.document.body.append(outside);
    outside.click();
    outside.remove();
  });

  // The name that the list is searched for is behind the #, which no browser sends, and goes to Airflow in a header:
  // addresses are in the logs of web servers and proxies.
  const filter = document.getElementById("filter");
  const nameWanted = () => (filter && new URLSearchParams(location.hash.slice(1)).get("name")) ?? "";

  // The page is fetched again, and only the sections that have changed are replaced.
  const refresh = async () => {
    const [asked, name] = [location.href, nameWanted()];
    const headers = { Accept: "text/html", ...(name && { "X-SMS-Name": encodeURIComponent(name) }) };
    const response = await fetch(asked, { headers });
    if (!response.ok) throw new Error(`Airflow responded with status ${response.status}`);
    if (location.href !== asked) return; // the list is searched for something else by now
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of fresh.querySelectorAll("[data-swap]")) {
      const old = document.getElementById(part.id);
      if (!old || old.dataset.html === part.innerHTML) continue;
      const html = part.innerHTML;
      // A button that has the focus keeps it.
      const chosen = old.contains(document.activeElement) ? document.activeElement.dataset : null;
      old.replaceChildren(...document.adoptNode(part).childNodes);
      old.dataset.html = html;
      if (chosen?.action) {
        const same = [...old.querySelectorAll("button[data-action]")].find((button) =>
          ["action", "outcome", "requests"].every((name) => button.dataset[name] === chosen[name]));
        same?.focus();
      }
    }
    document.body.dataset.live = fresh.body.dataset.live ?? "";
  };

  // A page that takes long asks less often: refreshes take a twentieth of the time at most.
  const SHARE = 20;
  let took = 0;
  let waited = 0;
  const search = async () => {
    document.getElementById("name").value = nameWanted();
    filter.elements.state.value = new URLSearchParams(location.search).get("state") ?? "";
    try {
      await refresh();
    } catch (error) {
      say(`${STALE}: ${error.message}`, true);
    }
  };
  if (filter) {
    filter.addEventListener("submit", (event) => {
      event.preventDefault();
      const [state, name] = [filter.elements.state.value, document.getElementById("name").value.trim()];
      const address = new URL(filter.action);
      if (state) address.searchParams.set("state", state);
      if (name) address.hash = `name=${encodeURIComponent(name)}`;
      history.pushState(null, "", address);
      search();
    });
    addEventListener("popstate", search);
    if (nameWanted()) search();
  }

  setInterval(async () => {
    const seconds = Number(document.body.dataset.live) && Math.max(Number(document.body.dataset.live), SHARE * took);
    if (!seconds || document.hidden || document.querySelector("dialog[open]")) return;
    waited += 1;
    if (waited < seconds) return;
    waited = -Infinity; // until this refresh has ended
    const began = performance.now();
    try {
      await refresh();
      if (message.textContent.startsWith(STALE)) say("");
    } catch (error) {
      say(`${STALE}: ${error.message}`, true);
    }
    took = (performance.now() - began) / 1000;
    waited = 0;
  }, 1000);

  const send = async (address, body) => {
    const response = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-SMS-Page": "1" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (response.ok) return text;
    let reason = `Airflow responded with status ${response.status}`;
    try {
      const { detail } = JSON.parse(text);
      if (typeof detail === "string") reason = detail;
    } catch {
      // Not a response of this application: the status is all that is known.
    }
    throw new Error(reason);
  };

  const confirmed = (title, text) => new Promise((resolve) => {
    const dialog = document.getElementById("confirm");
    document.getElementById("confirm-title").textContent = title;
    document.getElementById("confirm-text").textContent = text;
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-action]");
    if (!button) return;
    const { action, title, text, outcome, requests, people } = button.dataset;
    if (!(await confirmed(title, text))) return;
    button.blur();
    const body = action === "resolve" ? { outcome, requests: requests.split(",").map(Number), people: Number(people) } : {};
    try {
      say(JSON.parse(await send(`${document.body.dataset.campaign}/${action}`, body)).message);
    } catch (error) {
      say(error.message, true);
    }
    await refresh().catch((error) => say(error.message, true));
  });
})();
