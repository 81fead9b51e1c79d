// A list of any length, one page at a time, newest first. New rows appear on the newest page; older pages stay still.

import { make } from "./dom.js";
import { amount, count } from "./format.js";

export const ROWS = 50;

export class Pages {
  #load;
  #render;
  #showError;
  #buttons;
  #label = make("span", { className: "quiet" });
  #before = [null];
  #page = null;
  #busy = false;
  #again = false;
  #turn = 0;

  // load(before) returns a page, render(page) shows it, showError(error) shows why loading failed.
  constructor(bar, load, render, showError) {
    this.#load = load;
    this.#render = render;
    this.#showError = showError;
    const button = (label, action) => make("button", { type: "button", textContent: label, onclick: action });
    this.#buttons = {
      newest: button("Newest", () => this.#go([null])),
      newer: button("Newer", () => this.#go(this.#before.slice(0, -1))),
      older: button("Older", () => this.#page && this.#go([...this.#before, this.#page.next])),
    };
    bar.append(this.#buttons.newest, this.#buttons.newer, this.#label, this.#buttons.older);
    bar.hidden = true;
    this.bar = bar;
  }

  // Goes to the newest page.
  restart() {
    return this.#go([null]);
  }

  // Shows new rows on the newest page; on older ones, their number, when the total is known.
  arrived(total) {
    if (this.#before.length === 1) return this.refresh();
    const added = total === undefined || !this.#page ? 0 : total - this.#page.total;
    this.#buttons.newest.textContent = added > 0 ? `Newest (${amount(added)} new)` : "Newest";
    return Promise.resolve();
  }

  // Loads the page again, with one request at a time however often rows arrive.
  async refresh() {
    this.#again = true;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#again) {
        this.#again = false;
        const turn = this.#turn;
        const page = await this.#load(this.#before.at(-1));
        if (turn === this.#turn && page) this.#show(page);
      }
    } catch (error) {
      this.#showError(error);
    } finally {
      this.#busy = false;
    }
  }

  #go(before) {
    this.#before = before.length ? before : [null];
    this.#page = null; // until the next page is loaded, so that a second click on Older does nothing
    this.#turn += 1;
    return this.refresh();
  }

  #show(page) {
    this.#page = page;
    const depth = this.#before.length;
    this.bar.hidden = depth === 1 && page.next === null;
    this.#buttons.newest.textContent = "Newest";
    this.#buttons.newest.disabled = this.#buttons.newer.disabled = depth === 1;
    this.#buttons.older.disabled = page.next === null;
    this.#label.textContent = `Page ${amount(depth)}, ${count(page.rows.length, "row")}`;
    this.#render(page);
  }
}
