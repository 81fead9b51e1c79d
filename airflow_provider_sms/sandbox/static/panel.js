// Account and faults: the balance, and the faults that the next requests will meet.

import { change, read } from "./api.js";
import { by, make } from "./dom.js";
import { count } from "./format.js";

export class Panel {
  #reads = 0;
  #isTyped = false;

  constructor(showError) {
    this.showError = showError;
    this.form = by("fault-form");
    by("balance").addEventListener("input", () => (this.#isTyped = true));
    by("balance-form").addEventListener("submit", (event) => {
      this.#isTyped = false;
      this.#do(event, () => change("PUT", "balance", { balance: by("balance").valueAsNumber }));
    });
    by("amount-form").addEventListener("submit", (event) =>
      this.#do(event, async () => {
        await change("POST", event.submitter.value, { amount: by("amount").valueAsNumber });
        by("amount").value = "";
      }),
    );
    by("post-paid").addEventListener("change", (event) =>
      this.#do(event, () => change("PUT", "post-paid", { post_paid: by("post-paid").checked })),
    );
    by("clear-faults").addEventListener("click", (event) => this.#do(event, () => change("DELETE", "faults")));
    this.form.addEventListener("submit", (event) => this.#do(event, () => change("POST", "faults", [this.#fault()])));
    this.form.addEventListener("input", () => this.#advise());
    this.#advise();
  }

  show(state) {
    // A new balance replaces the one in the field, unless somebody is typing there.
    if (!this.#isTyped && !state.post_paid) by("balance").value = state.balance;
    by("balance").disabled = state.post_paid;
    for (const control of by("amount-form").elements) control.disabled = state.post_paid;
    by("post-paid").checked = state.post_paid;
    by("no-faults").hidden = state.faults.length > 0;
    by("clear-faults").disabled = state.faults.length === 0;
    const more = state.waiting_faults - state.faults.length;
    by("more-faults").hidden = more === 0;
    by("more-faults").textContent = `and ${count(more, "more", "more")}`;
    by("faults").replaceChildren(...state.faults.map(faultItem));
  }

  get #kind() {
    return by("fault-kind").value;
  }

  #fault() {
    // Only sending costs anything.
    const chargeAfter = (name) => (by("fault-on").value === "send" ? { charge_after: by(name).valueAsNumber } : {});
    const fields = {
      status: {
        status: by("fault-status").valueAsNumber,
        accepted: by("fault-accepted").checked,
        by: by("fault-by").value,
        retry_after: by("fault-retry-after").value || null,
      },
      delay: { seconds: by("fault-seconds").valueAsNumber, ...chargeAfter("fault-charge-after") },
      drop_before: { reset: by("fault-reset").checked },
      drop_after: { reset: by("fault-reset").checked, ...chargeAfter("fault-charge-after") },
      truncated: chargeAfter("fault-charge-after"),
      foreign: chargeAfter("fault-charge-after"),
      late_charge: chargeAfter("fault-late"),
      spend: { amount: by("fault-amount").valueAsNumber, when: by("fault-when").value },
    };
    return {
      kind: this.#kind,
      on: by("fault-on").value,
      times: by("fault-times").valueAsNumber,
      persistent: by("fault-persistent").checked,
      ...fields[this.#kind],
    };
  }

  // Shows the fields of this kind of fault, and its advice. Fields of other kinds are disabled and not sent.
  async #advise() {
    for (const label of this.form.querySelectorAll("[data-for]")) {
      label.hidden = !label.dataset.for.split(" ").includes(this.#kind);
      label.querySelector("input, select").disabled = label.hidden;
    }
    by("fault-times").disabled = by("fault-persistent").checked;
    const { kind, on, status, accepted, by: author } = this.#fault();
    if (kind === "status" && !by("fault-status").checkValidity()) return;
    const current = ++this.#reads;
    try {
      const guidance = await read("advice", { kind, on, status, accepted, by: author });
      if (current !== this.#reads) return;
      by("fault-effect").textContent = guidance.effect;
      by("fault-advice").textContent = guidance.advice;
    } catch (error) {
      this.showError(error);
    }
  }

  async #do(event, action) {
    event.preventDefault();
    try {
      await action();
      this.showError(null);
    } catch (error) {
      this.showError(error);
    }
  }
}

function faultItem(fault) {
  const details = [
    fault.status,
    fault.accepted ? "accepted" : null,
    fault.by === "gateway" ? "by a gateway" : null,
    fault.retry_after === null ? null : `Retry-After ${fault.retry_after}`,
    fault.seconds === null ? null : `${fault.seconds} s`,
    fault.charge_after === null ? null : `charged after ${fault.charge_after} s`,
    fault.amount === null ? null : `${fault.amount < 0 ? "tops up" : "spends"} ${Math.abs(fault.amount)} ${fault.when}`,
    { send: "sending", balance: "the balance", authentication: "authentication" }[fault.on],
    fault.persistent ? "until cleared" : count(fault.left, "request"),
  ].filter((detail) => detail !== null);
  return make(
    "li",
    {},
    make("p", { className: "facts" }, make("span", { className: "mark fault", textContent: fault.kind }), ...details.map((detail) => make("span", { textContent: String(detail) }))),
    make("p", { className: "quiet", textContent: fault.advice }),
  );
}
