// By request: each with its response and, once opened, its messages.

import { read } from "./api.js";
import { by, fill, make, text, time } from "./dom.js";
import { amount, count, facts, shown } from "./format.js";
import { Pages, ROWS } from "./pages.js";

const OPERATIONS = { bulk: "bulk send", group: "group send", balance: "balance", authentication: "token" };

export class Requests {
  constructor(showError) {
    this.showError = showError;
    this.list = by("requests");
    const bar = by("view-requests").querySelector(".pager");
    this.pages = new Pages(bar, (before) => read("requests", { before, limit: ROWS }), (page) => this.#show(page), showError);
  }

  clear() {
    this.list.replaceChildren();
    this.pages.restart();
  }

  #show(page) {
    fill(this.list, page.rows, (row) => this.#row(row));
  }

  #row(row) {
    const detail = make("div", { className: "detail", id: `request-${row.number}`, hidden: true });
    const what = make("span", { className: "what" }, make("b", { textContent: `#${row.number}` }), ` ${OPERATIONS[row.operation]}`);
    const sends = row.operation === "bulk" || row.operation === "group";
    const head = make(
      "button",
      { type: "button", className: "request", "aria-expanded": "false", "aria-controls": detail.id },
      make("span", { className: "at" }, time(row.at)),
      what,
      make("span", {}, responseMark(row)),
      make("span", {}, row.fault === "none" ? null : make("span", { className: "mark fault", textContent: row.fault })),
      make("span", { className: "n", textContent: sends ? `${amount(row.accepted)} of ${amount(row.submitted)}` : "" }),
      make("span", { className: "n cost", textContent: sends ? amount(row.cost) : "" }),
      make("span", { className: "n id", textContent: row.event_id ?? "" }),
    );
    head.addEventListener("click", () => {
      detail.hidden = !detail.hidden;
      head.setAttribute("aria-expanded", String(!detail.hidden));
      if (!detail.hidden && !detail.firstChild) this.#fill(detail, row);
    });
    return make("li", {}, head, detail);
  }

  async #fill(detail, row) {
    const list = make("ul", { className: "rows messages" });
    const more = make("button", { type: "button", textContent: "More", hidden: true });
    let offset = 0;
    const next = async () => {
      try {
        const page = await read(`requests/${row.number}`, { offset });
        list.append(...page.rows.map((message) => messageItem(message)));
        more.hidden = page.next === null;
        offset = page.next;
      } catch (error) {
        this.showError(error);
      }
    };
    more.addEventListener("click", next);
    detail.append(about(row), ...(row.advice ? [advice(row)] : []), list, more);
    if (row.accepted) await next();
  }
}

function responseMark(row) {
  if (row.status === null) return make("span", { className: "mark bad", textContent: "no response" });
  const kind = row.status < 300 ? "good" : "bad";
  return make("span", { className: `mark ${kind}`, textContent: String(row.status) });
}

function about(row) {
  const pairs = [
    ["Path", row.path],
    ["Time", row.at.replace("T", " ")],
    ...(row.event_id ? [["Event id", row.event_id]] : []),
    ...(row.error ? [["Refused with", row.error]] : []),
    ...(row.accepted ? [["Accepted", `${count(row.accepted, "message")}, ${count(row.parts, "part")}`]] : []),
    ...(row.test_mode ? [["Test mode", "normal response, nothing accepted"]] : []),
  ];
  const pair = ([name, value]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }));
  return make("dl", { className: "about" }, ...pairs.map(pair));
}

function advice(row) {
  return make("p", { className: "advice" }, make("b", { textContent: "What a correct client must do: " }), row.advice);
}

// Returns a message in a list: number, text and details.
export function messageItem(message, extra = null) {
  return make(
    "li",
    { className: "message", "data-key": String(message.key) },
    make(
      "p",
      { className: "facts" },
      make("a", { href: `#/numbers/${message.destination}`, textContent: message.destination }),
      ...facts(message).map((fact) => make("span", { textContent: fact })),
      extra,
    ),
    text("p", "content", shown(message)),
  );
}
