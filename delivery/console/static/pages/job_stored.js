/**
 * What a job has stored: the steps of its iteration, and its items and effects with what became of them; how one answers what it
 * waits for, asks it something, says what became of an unknown effect, and repeats the iteration from a step.
 */

import { field, h } from "../lib/dom.js";
import { fullMoment, moment, said, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { tag, toast } from "../lib/page.js";
import { table } from "../lib/table.js";
import { ask, open } from "../lib/dialog.js";

const COLOURS = { done: "good", received: "good", failed: "bad", timed_out: "bad", unknown: "warn", begun: "info", waiting: "info" };
const PAGE = 100;

export const shownJson = (value) => JSON.stringify(value, null, 2);

/** Returns what was typed as JSON; what is none is a text, nothing is null. */
export function typedValue(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return text;
  }
}

/** Returns the names of the signals that a job waits for. */
export const signalsOf = ({ waits_for: text }) => [...(text || "").matchAll(/'([^']*)'/g)].map((found) => found[1]);

/** Returns in words what a job waits for. */
export const waiting = (job) => (signalsOf(job).length ? t("job.waits_signal", { names: signalsOf(job).join(", ") }) : t("job.waits_time"));

const textArea = (name) => h("textarea", { name, rows: 3, class: "mono", spellcheck: "false" });

export const signalFields = (name = "") => [
  field({ label: t("job.signal_name") }, h("input", { name: "name", required: true, maxlength: 200, autocomplete: "off", value: name })),
  field({ label: t("job.data"), hint: t("job.data_hint") }, textArea("data")),
];

/** What an operator says of something unknown. */
export const outcomeFields = () => [
  field({ label: t("job.outcome") }, h("select", { name: "outcome" }, ["done", "not_done"].map((one) => h("option", { value: one }, word("job_outcome", one))))),
  field({ label: t("job.result"), hint: t("job.data_hint") }, textArea("result")),
];

/** Sends a signal that is written into a dialog. Returns whether it was sent. */
export const sendSignal = (path, name, by) => ask({
  title: t("job.signal"), action: t("jobs.signal"), fields: signalFields(name),
  submit: async (given) => {
    await api.post(`${path}:signal`, { name: given.name, data: typedValue(given.data), by });
    toast(t("job.signal_sent"));
  },
});

/** Asks a job something and shows what it says. */
export async function query(path) {
  const answer = await ask({
    title: t("job.query"), action: t("job.query"),
    fields: [
      field({ label: t("job.query_name") }, h("input", { name: "name", required: true, maxlength: 200, autocomplete: "off" })),
      field({ label: t("job.parameters"), hint: t("job.data_hint") }, textArea("parameters")),
    ],
    submit: ({ name, parameters }) => api.post(`${path}/queries/${encodeURIComponent(name)}`, parameters ? { parameters: typedValue(parameters) } : {}),
  });
  if (answer) await open(t("job.answer"), (close) => [h("pre", { tabindex: 0, "aria-label": t("job.answer") }, shownJson(answer.answer)), h("div", { class: "actions" }, h("button", { onclick: () => close() }, t("action.back")))]);
}

const resolve = (path, unit, by) => ask({
  title: t("job.resolve_title", { unit }), text: t("job.resolve_text"), action: t("job.resolve"), fields: outcomeFields(),
  submit: ({ outcome, result }) => api.post(`${path}/units:resolve`, { unit, outcome, by, ...(outcome === "done" && { result: typedValue(result) }) }),
});

/** Shows first what a repetition from here drops. */
async function reset(path, from, by) {
  const order = { from, by }, names = (steps) => steps.map((one) => one.id).join(", ") || "–";
  const { dropped, kept } = await api.post(`${path}:reset`, { ...order, dry_run: true });
  return ask({
    title: t("job.reset_title", { step: from }), text: t("job.reset_text", { dropped: names(dropped), kept: names(kept) }), action: t("jobs.reset"),
    fields: [h("label", { class: "check" }, h("input", { type: "checkbox", name: "again" }), t("job.again"))],
    submit: ({ again }) => api.post(`${path}:reset`, { ...order, again }),
  });
}

/** Shows both lists in `place` and returns a function that reads them again. `changed` is called after a change; `by`: who makes it, "" if nobody may. */
export function stored(place, path, context, by, changed) {
  const steps = h("div"), units = h("div");
  place.append(h("h2", {}, t("job.steps")), steps, h("details", {}, h("summary", {}, t("job.units")), units));
  const act = (work, title) => by && h("button", { class: "small", onclick: async () => { if (await work().catch((error) => toast(error.message, "bad"))) changed(); } }, title);
  const column = { title: t("job.outcome"), width: "9rem", cell: (row) => tag(COLOURS[row.status] || "", word("job_unit", row.status)) };
  const at = { title: t("job.at"), width: "8rem", cell: (row) => (row.at ? h("span", { title: fullMoment(row.at) }, moment(row.at)) : "–") };
  const result = { title: t("job.result"), width: "2fr", cell: (row) => (row.reason ? said(row.reason) : "result" in row ? h("code", {}, JSON.stringify(row.result)) : "–") };
  const list = (root, name, label, action) => table(root, {
    label, context, id: (row) => row.id, whenEmpty: { title: t("job.nothing_stored") },
    load: async ({ cursor, signal }) => {
      const page = await api.get(`${path}/${name}`, { cursor, limit: PAGE }, { signal });
      return { rows: page[name], next: page.next };
    },
    columns: [{ title: t("job.name"), width: "1.5fr", cell: (row) => row.id }, column, at, result, { title: t("job.act"), width: "9rem", cell: (row) => action(row) || "–" }],
  });
  const resolves = (row) => row.status === "unknown" && act(() => resolve(path, row.id, by), t("job.resolve"));
  const lists = [
    list(steps, "steps", t("job.steps"), (row) => resolves(row) || (/^(step|effect|unit):/.test(row.id) && act(() => reset(path, row.id, by), t("jobs.reset")))),
    list(units, "units", t("job.units"), resolves),
  ];
  return () => lists.forEach((one) => one.update());
}
