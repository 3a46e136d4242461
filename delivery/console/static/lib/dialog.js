/** Dialogs: a question before something is done, and forms. The focus goes back to where it was. */

import { copy, field, h, newId, values } from "./dom.js";
import { number, t } from "./words.js";
import { submits } from "./page.js";

const MANY = 100;
/** From this number of things on, the number must be typed. */

/**
 * Opens a dialog and returns a promise of what `close(value)` was called with; undefined if it was closed otherwise.
 * `build(close)` returns its content.
 */
export function open(title, build) {
  return new Promise((done) => {
    const id = newId("dialog");
    let result;
    const dialog = h("dialog", { "aria-labelledby": id, onclose: () => { dialog.remove(); done(result); } });
    const close = (value) => { result = value; dialog.close(); };
    dialog.append(h("h2", { id }, title), ...[build(close)].flat());
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Asks before something is done: confirm({title, text, action: t("…"), count, danger: true}) returns a promise of true or
 * false. `text` is a sentence or a node. With a `count` of 100 or more the number must be typed.
 */
export async function confirm({ title, text, action, count = 1, danger = false }) {
  const answer = await open(title, (close) => {
    const typed = count >= MANY && h("input", { name: "typed", inputmode: "numeric", autocomplete: "off", required: true });
    const isRight = () => !typed || typed.value.replace(/\D/g, "") === String(count);
    const form = h("form", { onsubmit: (event) => {
      event.preventDefault();
      if (isRight()) close(true);
      else { typed.setAttribute("aria-invalid", "true"); typed.focus(); }
    } },
    text && (text instanceof Node ? text : h("p", {}, text)),
    typed && field({ label: t("dialog.type_number", { number: number(count) }) }, typed),
    h("div", { class: "actions" },
      h("button", { class: danger ? "danger" : "primary" }, action),
      h("button", { type: "button", onclick: () => close(false), autofocus: !typed && danger }, t("action.back"))));
    return form;
  });
  return answer === true;
}

/**
 * Shows a form in a dialog: ask({title, text, fields: [node, …], action, submit}). `submit(values, form)` does the work and may
 * raise an `ApiError`, which is shown beside the fields. Returns a promise of what `submit` returned, undefined if closed.
 */
export function ask({ title, text, fields, action, submit }) {
  return open(title, (close) => h("form", { onsubmit: submits(async (form) => close(await submit(values(form), form) ?? true)) },
    text && h("p", {}, text),
    fields,
    h("div", { class: "actions" },
      h("button", { class: "primary" }, action),
      h("button", { type: "button", onclick: () => close() }, t("action.back")))));
}

/** Shows a secret that the API returns only once, with a button that copies it: showOnce({title, label, secret}). */
export function showOnce({ title, label, secret }) {
  return open(title, (close) => {
    const input = h("input", { class: "mono", value: secret, readonly: true, spellcheck: "false", onfocus: () => input.select() });
    const outcome = h("p", { role: "status" });
    const take = async () => {
      const isCopied = await copy(secret);
      outcome.textContent = t(isCopied ? "dialog.copied" : "dialog.not_copied");
      if (!isCopied) input.focus();
    };
    return [
      h("p", {}, t("dialog.once")),
      field({ label }, input),
      outcome,
      h("div", { class: "actions" },
        h("button", { type: "button", class: "primary", onclick: take, autofocus: true }, t("dialog.copy")),
        h("button", { type: "button", onclick: () => close() }, t("dialog.done"))),
    ];
  });
}
