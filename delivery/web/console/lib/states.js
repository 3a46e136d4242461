/** The states of a page that look alike everywhere: loading, empty, error, no right; and short notices. */

import { h, newId, paint } from "./dom.js";
import { has, t, word } from "./words.js";
import { ApiError, NoResponse } from "./api.js";

/** Returns the sentence that a person reads about an error. */
export function explain(error) {
  if (error instanceof NoResponse) return t("error.no_response");
  if (!(error instanceof ApiError)) return t("error.page");
  const texts = error.errors.map((one) => explainOne(one));
  return [...new Set(texts.length ? texts : [explainOne({ code: error.code, message: error.detail || error.title })])].join(" ");
}

/** Returns the sentence for {code, message} of the API. */
export const explainOne = ({ code, message }) => (has(`problem.${code}`) ? word("problem", code) : message);

export const loading = () => h("p", { class: "state loading", role: "status" }, t("state.loading"));

/** `action` is a button or a link with the next step. */
export const empty = ({ title, text, action }) => h("div", { class: "state" }, h("p", { class: "state-title" }, title), text && h("p", {}, text), action);

export const noRight = () => empty({ title: t("state.no_right"), text: t("state.no_right_text") });

/** `retry` is called by the button. */
export function failed(error, retry) {
  if (!(error instanceof ApiError || error instanceof NoResponse)) console.error(error);
  if (error.status === 403) return noRight();
  return h("div", { class: "state", role: "alert" },
    h("p", { class: "state-title" }, t("state.failed")),
    h("p", {}, explain(error)),
    error.code && h("p", { class: "quiet" }, h("code", {}, error.code)),
    retry && h("button", { onclick: retry }, t("action.retry")));
}

const LOADING_SHOWN_AFTER = 150;

/**
 * Shows in `root` what `draw(await load())` returns; until then that it is loading, and an error with a button. Returns a
 * function that loads again, which keeps the old content until the new one is there.
 */
export function withStates(root, load, draw) {
  let turn = 0;
  async function show() {
    const mine = ++turn;
    const timer = root.hasChildNodes() ? 0 : setTimeout(() => paint(root, loading()), LOADING_SHOWN_AFTER);
    try {
      const data = await load();
      if (mine === turn) paint(root, draw(data));
    } catch (error) {
      if (mine === turn && error.name !== "AbortError") paint(root, failed(error, show));
    } finally {
      clearTimeout(timer);
    }
  }
  show();
  return show;
}

/** Returns a box with a sentence: kind is "info", "good", "warn" or "bad". */
export const notice = (kind, ...children) => h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, ...children);

/** Returns a small mark with a word: kind is "good", "bad", "warn", "info" or "" (neutral). */
export const tag = (kind, text) => h("span", { class: `tag ${kind}` }, text);

const STATUS_KINDS = {
  sent: "good", delivered: "good", read: "good", failed: "bad", unknown: "warn", expired: "bad", no_contact: "warn", queued: "info", sending: "info",
};
/** Returns the mark of the status of an outcome. */
export const statusTag = (status) => tag(STATUS_KINDS[status] || "", word("status", status));

/** Shows a short message at the bottom of the window, which screen readers read out. It goes by itself; an error stays longer. */
export function toast(text, kind = "good") {
  const place = document.getElementById("toasts");
  if (place.lastChild?.textContent === text) place.lastChild.remove();
  const shown = h("p", { class: `toast ${kind}` }, text);
  place.append(shown);
  setTimeout(() => shown.remove(), kind === "bad" ? 12000 : 5000);
}

/**
 * Writes the errors of the API into a form: beside the field with the name in `path`, the others above the form. The first
 * wrong field gets the focus. Without an error clears them.
 */
export function showErrors(form, error) {
  for (const old of form.querySelectorAll(".field-error, .form-error")) old.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  if (!error) return;
  const rest = [];
  for (const one of error.errors?.length ? error.errors : [{ path: "", whole: explain(error) }]) {
    const input = one.path && form.elements[one.path];
    if (input?.id) attach(input, explainOne(one));
    else rest.push(one.whole || explainOne(one));
  }
  if (rest.length) form.prepend(h("div", { class: "form-error notice bad", role: "alert" }, rest.map((text) => h("p", {}, text))));
  form.querySelector("[aria-invalid]")?.focus();
}

function attach(input, text) {
  const id = newId("error");
  input.before(h("p", { class: "field-error", id }, text));
  input.setAttribute("aria-invalid", "true");
  input.setAttribute("aria-describedby", [input.getAttribute("aria-describedby"), id].filter(Boolean).join(" "));
}

/**
 * Returns a handler for `onsubmit`: calls `work(form)` once at a time (a double click sends once), shows the button as busy,
 * writes errors into the form.
 */
export function submits(work) {
  return async (event) => {
    event.preventDefault();
    const form = event.currentTarget, button = event.submitter || form.querySelector("button");
    if (form.dataset.busy) return;
    form.dataset.busy = "1";
    button?.setAttribute("aria-disabled", "true");
    showErrors(form);
    try {
      await work(form, button);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof ApiError || error instanceof NoResponse)) console.error(error);
      showErrors(form, error);
    } finally {
      delete form.dataset.busy;
      button?.removeAttribute("aria-disabled");
    }
  };
}
