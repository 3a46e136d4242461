/** Dialogs: a question before something is done, and forms. The focus goes back to where it was. */

import { copy, field, h, newId, values } from "./dom.js";
import { number, t } from "./words.js";
import { inOneAction } from "./api.js";
import { submits, toast, toastError } from "./page.js";

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

const AT_ONCE = 10;
/** So many things are changed at the same time. */

/** Returns the field of a reason, which stands in the action log. */
export const reasonField = (attributes = {}) => field({ label: t("jobs.reason"), hint: t("jobs.reason_hint") }, h("input", { name: "reason", maxlength: 500, autocomplete: "off", ...attributes }));

/** Returns the step of `bulk` that changes each of these alone: `call(id, options, given)`. */
export const eachOf = (ids, call) => async (left, start = 0, options, given) => {
  const part = ids.slice(start, start + AT_ONCE);
  const answers = await Promise.allSettled(part.map((id) => call(id, options, given)));
  const unchanged = answers.filter((one) => one.status === "rejected").length;
  return { changed: part.length - unchanged, unchanged, next: start + AT_ONCE < ids.length ? start + AT_ONCE : null };
};

/**
 * Changes many things step after step. The dialog says what it covers, asks for the reason, and then shows how far it is until it is done
 * or stopped: bulk({title, text, covers: {State: "ready"}, until, action, danger, count, isMore, fields, step, changed, unchanged}).
 * `covers`: what was selected by; without it what is ticked. `until`: the moment after which nothing is touched. `isMore`: there are more than were
 * counted, and all of them are changed. `step(left, cursor, options, given)` returns {changed, unchanged, next}; its requests take `options`, so that they
 * are one entry of the action log. `changed`, `unchanged`: return the words for a count. Returns a promise of whether anything was begun.
 */
export function bulk({ title, text, covers, until, action, danger = false, count, isMore = false, fields, step, changed, unchanged }) {
  const ends = { changed: 0, unchanged: 0, isStopped: false };
  const reason = fields ?? [reasonField()];
  const work = async (given, place, close) => {
    const options = inOneAction(given.reason);
    const bar = h("progress", { "aria-label": title, max: count, ...(isMore ? {} : { value: 0 }) }), state = h("p", { role: "status" });
    const stop = h("button", { type: "button", class: "danger", onclick: () => { ends.isStopped = true; stop.disabled = true; } }, t("bulk.stop"));
    place.closest("dialog").addEventListener("close", () => { ends.isStopped = true; });
    place.replaceChildren(bar, state, h("div", { class: "actions" }, stop));
    stop.focus();
    let cursor, most = isMore ? 2 ** 40 : count;
    do {
      const done = await step(most, cursor, options, given);
      ends.changed += done.changed;
      ends.unchanged += done.unchanged || 0;
      most -= done.changed;
      cursor = done.next;
      if (!isMore) bar.value = ends.changed + ends.unchanged;
      state.textContent = isMore ? t("bulk.so_far", { count: ends.changed }) : t("bulk.of", { done: ends.changed + ends.unchanged, count });
    } while (cursor && most > 0 && !ends.isStopped);
    ends.isStopped = ends.isStopped && Boolean(cursor) && most > 0;
    close(true);
  };
  return open(title, (close) => {
    const typed = count >= MANY && h("input", { name: "typed", inputmode: "numeric", autocomplete: "off", required: true });
    const place = h("form", { onsubmit: async (event) => {
      event.preventDefault();
      if (typed && typed.value.replace(/\D/g, "") !== String(count)) { typed.setAttribute("aria-invalid", "true"); typed.focus(); return; }
      try {
        await work(values(place), place, close);
      } catch (error) {
        toastError(error);
        close(true);
      }
      toast(changed(ends.changed));
      if (ends.unchanged) toast(unchanged(ends.unchanged), "bad");
      if (ends.isStopped) toast(t("bulk.stopped"));
    } },
    text && h("p", {}, text),
    h("p", {}, covers ? t(isMore ? "bulk.covers_more" : "bulk.covers", { count, when: until }) : t("bulk.covers_chosen", { count })),
    covers && h("ul", {}, Object.entries(covers).map(([name, value]) => h("li", {}, `${name}: `, h("span", { dir: "auto" }, value)))),
    reason,
    typed && field({ label: t("dialog.type_number", { number: number(count) }) }, typed),
    h("div", { class: "actions" },
      h("button", { class: danger ? "danger" : "primary" }, action),
      h("button", { type: "button", onclick: () => close(), autofocus: !typed && danger }, t("action.back"))));
    return place;
  });
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
