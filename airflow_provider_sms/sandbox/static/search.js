// What a person looks for. The sandbox looks at a part of its messages at a time; this asks on until a page is full.

import { read } from "./api.js";
import { by, fill, make } from "./dom.js";
import { amount, count } from "./format.js";
import { Pages, ROWS } from "./pages.js";
import { messageItem } from "./requests.js";

export class Search {
  constructor(failed) {
    this.query = null;
    this.list = by("found");
    const bar = by("view-search").querySelector(".pager");
    this.pages = new Pages(bar, (before) => this.#load(before), (page) => this.#show(page), failed);
  }

  forget() {
    this.list.replaceChildren();
    this.pages.restart();
  }

  look(query) {
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
      if (next !== null) by("search-state").textContent = `Looking: ${amount(page.total - next)} of ${count(page.total, "message")} …`;
    } while (query === this.query && next !== null && rows.length < ROWS);
    return { ...page, rows, next };
  }

  #show(page) {
    const end = page.next === null ? `all ${count(page.total, "message")} looked at` : "there may be more";
    by("search-state").textContent = page.rows.length ? `${count(page.rows.length, "message")} here; ${end}.` : `Nothing found; ${end}.`;
    fill(this.list, page.rows, (row) =>
      messageItem(row, make("span", { className: "ids" }, `${row.at.slice(0, 19).replace("T", " ")} · request ${row.request} · event ${row.event_id}`)),
    );
  }
}
