// A list of any length, a page at a time, newest first. The newest page follows what arrives; older ones stand still.

import { make } from "./dom.js";
import { amount, count } from "./format.js";

export const ROWS = 50;

export class Pages {
  #load;
  #render;
  #failed;
  #buttons;
  #label = make("span", { className: "quiet" });
  #before = [null];
  #page = null;
  #busy = false;
  #again = false;
  #turn = 0;

  // load(before) gives a page, render(page) shows it, failed(error) says that there is none.
  constructor(bar, load, render, failed) {
    this.#load = load;
    this.#render = render;
    this.#failed = failed;
    const button = (words, act) => make("button", { type: "button", textContent: words, onclick: act });
    this.#buttons = {
      newest: button("Newest", () => this.#go([null])),
      newer: button("Newer", () => this.#go(this.#before.slice(0, -1))),
      older: button("Older", () => this.#page && this.#go([...this.#before, this.#page.next])),
    };
    bar.append(this.#buttons.newest, this.#buttons.newer, this.#label, this.#buttons.older);
    bar.hidden = true;
    this.bar = bar;
  }

  // Begins anew, with nothing shown.
  restart() {
    return this.#go([null]);
  }

  // Something has arrived: a total of so many, where it is known.
  arrived(total) {
    if (this.#before.length === 1) return this.refresh();
    const fresh = total === undefined || !this.#page ? 0 : total - this.#page.total;
    this.#buttons.newest.textContent = fresh > 0 ? `Newest (${amount(fresh)} new)` : "Newest";
    return Promise.resolve();
  }

  // One request at a time, however much arrives meanwhile.
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
      this.#failed(error);
    } finally {
      this.#busy = false;
    }
  }

  #go(before) {
    this.#before = before.length ? before : [null];
    this.#page = null; // until the next one is there: of this one no older one is asked for twice
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
