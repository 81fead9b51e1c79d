"use strict";
(() => {
  const REFRESH_SECONDS = 10;
  const STALE = "This page is no longer up to date";
  const message = document.getElementById("message");
  const dialog = document.getElementById("confirm");

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

  // The page is fetched again, and only the parts that have changed are replaced. A button that has the focus keeps it.
  const refresh = async () => {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) throw new Error(`Airflow responded with status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const focused = document.activeElement.id;
    for (const part of fresh.querySelectorAll("[data-swap]")) {
      const old = document.getElementById(part.id);
      if (old.innerHTML !== part.innerHTML) old.replaceChildren(...document.adoptNode(part).childNodes);
    }
    if (focused) document.getElementById(focused)?.focus();
  };

  // The next refresh is waited for after the last one has ended: a page that takes long asks less often.
  const follow = (seconds) => setTimeout(async () => {
    const began = performance.now();
    try {
      if (!document.hidden && !dialog?.open) {
        await refresh();
        if (message.textContent.startsWith(STALE)) say("");
      }
    } catch (error) {
      say(`${STALE}: ${error.message}`, true);
    }
    follow(Math.max(REFRESH_SECONDS, (20 * (performance.now() - began)) / 1000));
  }, seconds * 1000);
  if (document.querySelector("[data-swap]")) follow(REFRESH_SECONDS);

  const send = async (address, body) => {
    const response = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-SMS-Page": "1" },
      body: JSON.stringify(body),
    });
    // Not JSON if it is no response of this application: then the status is all that is known.
    const said = await response.json().catch(() => ({}));
    if (!said.message) throw new Error(said.detail ?? `Airflow responded with status ${response.status}`);
    return said.message;
  };

  const confirmed = (title, text) => new Promise((resolve) => {
    document.getElementById("confirm-title").textContent = title;
    document.getElementById("confirm-text").textContent = text;
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-action]");
    if (!button) return;
    const { action, title, text, outcome, request } = button.dataset;
    if (!(await confirmed(title, text))) return;
    const body = action === "resolve" ? { outcome, request: Number(request) } : {};
    try {
      say(await send(`${document.body.dataset.campaign}/${action}`, body));
    } catch (error) {
      say(error.message, true);
    }
    await refresh().catch((error) => say(error.message, true));
  });
})();
