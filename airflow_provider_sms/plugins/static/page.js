"use strict";
(() => {
  const token = document.querySelector("meta[name=sms-token]")?.content ?? "";
  const told = document.getElementById("told");
  const STALE = "This is no longer up to date";

  const say = (text, bad = false) => {
    told.textContent = text;
    told.classList.toggle("bad", bad);
  };

  // Links into Airflow open in Airflow, not in the frame that it shows this page in.
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

  // What a campaign does is looked at anew, and only what has changed is put in place.
  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(`Airflow answered ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of fresh.querySelectorAll("[data-swap]")) {
      const old = document.getElementById(part.id);
      if (!old || old.dataset.html === part.innerHTML) continue;
      const html = part.innerHTML;
      for (const open of old.querySelectorAll("details[open]")) {
        part.querySelector(`#${open.id}`)?.setAttribute("open", "");
      }
      // Whoever is about to press something keeps it under their hand.
      const chosen = old.contains(document.activeElement) ? document.activeElement.dataset : null;
      old.replaceChildren(...document.adoptNode(part).childNodes);
      old.dataset.html = html;
      if (chosen?.act) {
        const same = [...old.querySelectorAll("button[data-act]")].find((button) =>
          ["act", "outcome", "requests"].every((name) => button.dataset[name] === chosen[name]));
        same?.focus();
      }
      window.drawCharts(old);
    }
    document.body.dataset.live = fresh.body.dataset.live ?? "";
  };

  let waited = 0;
  setInterval(async () => {
    const seconds = Number(document.body.dataset.live);
    if (!seconds || document.hidden || document.querySelector("dialog[open]")) return;
    waited += 1;
    if (waited < seconds) return;
    waited = -Infinity; // until this look has ended
    try {
      await refresh();
      if (told.textContent.startsWith(STALE)) say("");
    } catch (error) {
      say(`${STALE}: ${error.message}`, true);
    }
    waited = 0;
  }, 1000);

  const send = async (address, body) => {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-SMS-Token": token },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.ok) return text;
    let why = `Airflow answered ${answer.status}`;
    try {
      const { detail } = JSON.parse(text);
      if (typeof detail === "string") why = detail;
    } catch {
      // Not ours: the status says enough.
    }
    throw new Error(why);
  };

  const confirmed = (title, says) => new Promise((resolve) => {
    const dialog = document.getElementById("confirm");
    document.getElementById("confirm-title").textContent = title;
    document.getElementById("confirm-says").textContent = says;
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-act]");
    if (!button) return;
    const { act, title, says, outcome, requests, people } = button.dataset;
    if (!(await confirmed(title, says))) return;
    button.blur();
    const body = act === "resolve" ? { outcome, requests: requests.split(",").map(Number), people: Number(people) } : {};
    try {
      say(JSON.parse(await send(`${document.body.dataset.campaign}/${act}`, body)).message);
    } catch (error) {
      say(error.message, true);
    }
    await refresh().catch((error) => say(error.message, true));
  });

  const form = document.getElementById("look-up");
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const found = document.getElementById("found");
    const [number, region] = [form.elements.number.value, form.elements.region.value];
    found.textContent = "Looking …";
    try {
      const part = new DOMParser().parseFromString(await send(form.dataset.to, { number, region }), "text/html");
      found.replaceChildren(...document.adoptNode(part.body).childNodes);
      say("");
    } catch (error) {
      found.textContent = "";
      say(error.message, true);
    }
  });
})();
