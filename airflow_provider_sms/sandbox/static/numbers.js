// By number: the numbers that received messages, and the texts of one of them as a phone would show them.

import { read } from "./api.js";
import { by, fill, make, text, time } from "./dom.js";
import { amount, count, facts, shown } from "./format.js";
import { Pages, ROWS } from "./pages.js";

export class Numbers {
  constructor(showError) {
    this.view = by("view-numbers");
    this.list = by("numbers");
    this.bubbles = by("bubbles");
    this.chosen = null;
    this.pages = new Pages(
      this.view.querySelector(".people .pager"),
      (before) => read("numbers", { before, limit: ROWS }),
      (page) => this.#show(page),
      showError,
    );
    this.texts = new Pages(
      this.view.querySelector(".phone .pager"),
      (before) => this.chosen && read(`numbers/${encodeURIComponent(this.chosen)}`, { before, limit: ROWS }),
      (page) => this.#showTexts(page),
      showError,
    );
  }

  clear() {
    this.list.replaceChildren();
    this.bubbles.replaceChildren();
    this.pages.restart();
    this.texts.restart();
  }

  // Shows the texts of a number, or of none when it is null.
  choose(number) {
    if (number !== this.chosen) {
      this.chosen = number;
      this.bubbles.replaceChildren();
      this.texts.restart();
    }
    this.view.dataset.chosen = number ? "yes" : "no";
    by("phone").hidden = !number;
    by("phone-hint").hidden = Boolean(number);
    by("phone-number").textContent = number ?? "";
    this.#mark();
  }

  arrived() {
    return Promise.all([this.pages.arrived(), this.texts.arrived()]);
  }

  #show(page) {
    fill(this.list, page.rows, (row) => update(make("li", {}, make("a", { className: "person" })), row), update);
    this.#mark();
  }

  #mark() {
    for (const link of this.list.querySelectorAll("a")) {
      if (link.parentElement.dataset.key === this.chosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  #showTexts(page) {
    const list = this.bubbles;
    const wasAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    fill(list, page.rows.toReversed(), bubble);
    by("phone-facts").textContent = [page.rows[0]?.network, count(page.total, "text")].filter(Boolean).join(" · ");
    if (wasAtEnd) list.scrollTop = list.scrollHeight;
  }
}

function update(item, row) {
  const link = item.firstElementChild;
  const version = `${row.messages} ${row.at}`;
  if (link.dataset.version === version) return item;
  link.dataset.version = version;
  link.href = `#/numbers/${row.destination}`;
  link.replaceChildren(
    make("b", { textContent: row.destination }),
    time(row.at),
    text("span", "preview", row.latest),
    make("span", { className: "quiet", textContent: row.network }),
    make("span", { className: "n quiet", textContent: amount(row.messages) }),
  );
  return item;
}

function bubble(message) {
  return make(
    "li",
    { className: "bubble" },
    text("p", "content", shown(message)),
    make(
      "p",
      { className: "facts" },
      make("time", { dateTime: message.at, title: message.at, textContent: message.at.slice(0, 19).replace("T", " ") }),
      ...facts(message).map((fact) => make("span", { textContent: fact })),
      make("span", { textContent: `request ${message.request}` }),
    ),
  );
}
