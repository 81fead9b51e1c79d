// Search. One request examines a limited number of messages, so the page repeats it until a page of results is full.

import { read } from "./api.js";
import { by, fill, make } from "./dom.js";
import { amount, count } from "./format.js";
import { Pages, ROWS } from "./pages.js";
import { messageItem } from "./requests.js";

export class Search {
  constructor(showError) {
    this.query = null;
    this.list = by("found");
    const bar = by("view-search").querySelector(".pager");
    this.pages = new Pages(bar, (before) => this.#load(before), (page) => this.#show(page), showError);
  }

  clear() {
    this.list.replaceChildren();
    this.pages.restart();
  }

  find(query) {
    if (query === this.query) return;
    this.query = query;
    by("search-title").textContent = query ? `Messages with “${query}”` : "";
    this.list.replaceChildren();
    this.pages.restart();
  }

  async #load(before) {
    const query = this.query;
    if (!query) return null;
    const rows = [];
    let page;
    let next = before;
    do {
      page = await read("search", { q: query, before: next, limit: ROWS - rows.length });
      rows.push(...page.rows);
      next = page.next;
      if (next !== null) by("search-state").textContent = `Searching: ${amount(page.total - next)} of ${count(page.total, "message")} …`;
    } while (query === this.query && next !== null && rows.length < ROWS);
    return { ...page, rows, next };
  }

  #show(page) {
    const end = page.next === null ? `all ${count(page.total, "message")} searched` : "there may be more";
    by("search-state").textContent = page.rows.length ? `${count(page.rows.length, "message")} here; ${end}.` : `Nothing found; ${end}.`;
    fill(this.list, page.rows, (row) =>
      messageItem(row, make("span", { className: "ids" }, `${row.at.slice(0, 19).replace("T", " ")} · request ${row.request} · event ${row.event_id}`)),
    );
  }
}
