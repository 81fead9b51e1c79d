// The sandbox's page: it asks for the state once a second, and for messages when there are more or fewer of them.
"use strict";

const PAGE = 100;
const find = (id) => document.getElementById(id);
let limit = PAGE;
let shown = ""; // what the table shows: rows are fetched again only when this changes

async function call(method, path, body) {
  const response = await fetch(`_sandbox/${path}`, { method, body });
  const answer = await response.json();
  if (!response.ok) find("error").textContent = answer.errors[0].errorMessage;
  return response.ok ? answer : null;
}

async function change(method, path, body) {
  find("error").textContent = "";
  const state = await call(method, path, body);
  if (state) await show(state);
}

async function show(state) {
  find("requests").textContent = state.requests;
  find("accepted").textContent = state.accepted_messages;
  const balance = find("balance");
  if (document.activeElement !== balance) balance.value = state.balance;
  find("waiting").replaceChildren(...state.faults.map((fault) => element("li", describe(fault))));
  const number = find("number").value.replace(/\D/g, "");
  const wanted = JSON.stringify([state.requests, state.accepted_messages, number, limit]);
  if (wanted === shown) return;
  const found = await call("GET", `messages?limit=${limit}&number=${number}`);
  if (!found) return;
  find("messages").replaceChildren(...found.messages.map(row));
  find("shown").textContent = `${found.messages.length} of ${found.total}, newest first`;
  find("more").hidden = found.messages.length === found.total;
  shown = wanted;
}

function describe(fault) {
  const usual = { on: "send", times: 1, status: 500, by: "service", when: "before" };
  const told = Object.entries(fault).filter(([name, value]) => value && value !== usual[name]);
  return JSON.stringify(Object.fromEntries(told));
}

function row(message) {
  const at = message.at.slice(0, 19).replace("T", " ");
  const cells = [at, message.destination, message.content, message.parts, message.request];
  const made = element("tr");
  made.append(...cells.map((text) => element("td", text)));
  made.children[2].dir = "auto";
  return made;
}

function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text; // never markup
  return made;
}

async function poll() {
  try {
    await show(await call("GET", "state"));
    find("live").textContent = "Live";
  } catch {
    find("live").textContent = "The sandbox does not respond";
  }
}

find("balance-form").addEventListener("submit", (event) => {
  event.preventDefault();
  find("balance").blur();
  change("PUT", "balance", JSON.stringify({ balance: Number(find("balance").value) }));
});
find("faults-form").addEventListener("submit", (event) => {
  event.preventDefault();
  change("POST", "faults", find("faults").value);
});
find("example").addEventListener("change", (event) => {
  find("faults").value = event.target.value;
});
find("clear").addEventListener("click", () => change("DELETE", "faults"));
find("reset").addEventListener("click", () => {
  if (confirm("Forget messages, requests and faults, and restore the balance? The witness file stays.")) change("POST", "reset");
});
find("more").addEventListener("click", () => {
  limit += PAGE;
  poll();
});
find("number").addEventListener("input", () => {
  limit = PAGE;
  poll();
});

poll();
setInterval(poll, 1000);
