// The page as a whole: its views, the state from the stream, and clearing.

import { change, listen } from "./api.js";
import { by } from "./dom.js";
import { amount } from "./format.js";
import { Numbers } from "./numbers.js";
import { Panel } from "./panel.js";
import { Requests } from "./requests.js";
import { Search } from "./search.js";

let state = null;
let view = "requests";

function showError(error) {
  by("problem").hidden = error === null;
  by("problem").textContent = error === null ? "" : error.message;
}

const requests = new Requests(showError);
const numbers = new Numbers(showError);
const search = new Search(showError);
const panel = new Panel(showError);

// The URL's fragment selects the view: #/requests, #/numbers, #/numbers/27820000001, #/search/hello, #/panel.
function route() {
  const [, name, ...rest] = location.hash.split("/");
  view = ["requests", "numbers", "search", "panel"].includes(name) ? name : "requests";
  const argument = decoded(rest.join("/"));
  document.body.dataset.view = view;
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.hash === `#/${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  showError(null);
  by("query").value = view === "search" ? argument : "";
  if (view === "numbers") numbers.choose(argument || null);
  search.find(view === "search" ? argument : null);
  layOut();
  follow();
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a malformed URL that somebody typed
  }
}

function layOut() {
  const isEmpty = state !== null && state.requests === 0 && state.messages === 0;
  const main = view === "panel" ? "requests" : view;
  by("empty").hidden = !isEmpty;
  for (const name of ["requests", "numbers", "search"]) by(`view-${name}`).hidden = isEmpty || name !== main;
}

// Only the visible view is kept up to date.
function follow() {
  if (state === null) return;
  if (view === "numbers") numbers.arrived();
  else if (view !== "search") requests.pages.arrived(state.requests);
}

function update(now) {
  const isNewEpoch = state !== null && state.epoch !== now.epoch;
  state = now;
  by("count-messages").textContent = amount(now.messages);
  by("count-requests").textContent = amount(now.requests);
  by("count-balance").textContent = now.post_paid ? "post-paid" : amount(now.balance);
  panel.show(now);
  layOut();
  if (isNewEpoch) for (const each of [requests, numbers, search]) each.clear();
  else follow();
}

function live(isLive) {
  by("live").dataset.live = isLive ? "yes" : "no";
  by("live").textContent = isLive ? "Live" : "Disconnected, reconnecting";
  if (isLive) showError(null);
}

const base = new URL("v1", document.baseURI).href;
by("base-url").textContent = base;
by("connection").textContent = `AIRFLOW_CONN_SMS_DEFAULT='{"conn_type": "sms", "host": "${base}", "password": "…"}'`;

by("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = by("query").value.trim();
  location.hash = query ? `#/search/${encodeURIComponent(query)}` : "#/requests";
});
by("clear").addEventListener("click", () => by("clear-dialog").showModal());
by("clear-no").addEventListener("click", () => by("clear-dialog").close());
by("clear-yes").addEventListener("click", async () => {
  by("clear-dialog").close();
  try {
    await change("POST", "reset");
  } catch (error) {
    showError(error);
  }
});

window.addEventListener("hashchange", route);
route();
listen(update, live);
