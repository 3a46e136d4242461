/**
 * Jobs of people: state, next run, why one does not run; pause, resume, stop and start those that are chosen. All that the filters
 * find are counted, and then paused, resumed, stopped, or repeated from a step, up to the moment at which they were counted.
 */

import { field, h, paint } from "../lib/dom.js";
import { moment, number, said, t, word } from "../lib/words.js";
import { api, randomKey } from "../lib/api.js";
import { tag, toast, toastError } from "../lib/page.js";
import { table } from "../lib/table.js";
import { bulk, eachOf, reasonField } from "../lib/dialog.js";
import { follow } from "../lib/live.js";
import { outcomeFields, signalFields, typedValue } from "./job_stored.js";

const STATES = ["running", "paused", "stopping", "stopped", "finished", "failed"];
const COLOURS = { running: "good", finished: "good", paused: "warn", stopping: "warn", failed: "bad" };
const KIND = /^[a-z][a-z0-9_-]{0,63}$/;
const PAGE = 50;
const LONGEST_REASON = 64;

/** What applies to a job in each state: docs/jobs-states.md. */
export const VERBS = { running: ["pause", "stop"], paused: ["resume", "stop"], stopping: [], stopped: ["start"], finished: ["start"], failed: ["start", "stop"] };

/** What can be done to all jobs of a filter, by its state. */
const VERBS_OF_ALL = {
  running: ["pause", "signal", "stop"], paused: ["resume", "signal", "resolve", "stop"], stopping: [], stopped: ["reset"], finished: ["reset"], failed: ["reset", "resolve", "stop"],
  "": ["pause", "signal", "resolve", "stop"],
};

export const stateTag = (state) => tag(COLOURS[state] || "", word("job_state", state));

/** Whether the API lets this key change jobs; `inspect` only reads them. */
export const mayManage = (me) => ["manage", "admin", "operator"].some((scope) => me.scopes.includes(scope));

/** As whom the API lets this key change jobs. */
export const actorOf = (me) => (["admin", "operator"].some((scope) => me.scopes.includes(scope)) ? "admin" : "user");

export default {
  title: "page.jobs",
  right: "inspect",
  render(root, parameters, context) {
    const counts = h("ul", { class: "chips" }), everything = h("div", { class: "actions" }), place = h("div");
    const showCounts = (found) => paint(counts, STATES.map((state) => count(state, found ? number(found[state] || 0) : "…")));
    showCounts(); // what stands below does not move when they are known
    paint(root, h("h1", {}, t("page.jobs")), counts, everything, place);
    const list = table(place, {
      label: t("page.jobs"), context, id: (row) => row.id, href: (row) => `#/job/${encodeURIComponent(row.id)}`,
      filters: [
        { name: "state", label: t("jobs.state"), options: [["", t("jobs.any")], ...STATES.map((state) => [state, word("job_state", state)])] },
        { name: "kind", label: t("jobs.kind"), type: "search" },
        { name: "q", label: t("jobs.text"), type: "search" },
        { name: "reason", label: t("jobs.why"), type: "search" },
      ],
      columns: [
        { title: t("jobs.job"), width: "1.5fr", name: (row) => row.id, cell: (row) => row.id },
        { title: t("jobs.kind"), width: "1fr", cell: (row) => row.kind },
        { title: t("jobs.person"), width: "1fr", cell: (row) => row.user },
        { title: t("jobs.state"), width: "9rem", cell: (row) => stateTag(row.state) },
        { title: t("jobs.next"), width: "8rem", cell: (row) => (row.next_run || row.resumes_at ? moment(row.next_run || row.resumes_at) : "–") },
        { title: t("jobs.last"), width: "8rem", cell: (row) => (row.last_run ? moment(row.last_run) : "–") },
        { title: t("jobs.why"), width: "2fr", cell: (row) => why(row) || "–" },
      ],
      load: async ({ cursor, signal, kind, ...filters }) => {
        const isKind = !kind || KIND.test(kind), chosen = kind ? { ...filters, kind } : filters;
        if (mayManage(context.me)) paint(everything, isKind && buttons(chosen, context.me, () => list.reload()));
        if (!isKind) return { rows: [], next: null };
        return load(chosen, cursor, signal, showCounts);
      },
      actions: mayManage(context.me) ? ["pause", "resume", "stop", "start"].map((verb) => ({
        title: t(`jobs.${verb}`), danger: verb === "stop", run: (ids) => change(verb, ids, context.me),
      })) : undefined,
      whenEmpty: { title: t("jobs.none"), text: t("jobs.none_text") },
    });
    follow(["jobs"], () => list.update(), context.signal);
  },
};

function buttons(filter, me, again) {
  const verbs = Object.keys(filter).length ? VERBS_OF_ALL[filter.state || ""] : [];
  return verbs.map((verb) => h("button", { key: verb, class: verb === "stop" ? "danger" : "", onclick: () => changeAll(verb, filter, me, again) }, t(`jobs.all_${verb}`)));
}

const dialogOf = (verb, count) => ({
  title: t(`jobs.${verb}_title`, { count }), text: t(`jobs.${verb}_text`), action: t(`jobs.${verb}`), danger: verb === "stop", count,
  changed: (n) => t("jobs.changed", { count: n }), unchanged: (n) => t("jobs.unchanged", { count: n }),
});

/** The field of the reason, which stands in the action log; that of a pause is also the job's own. */
const reason = (isNeeded) => [reasonField({ required: isNeeded, maxlength: LONGEST_REASON })];

/** Counts first; jobs that change later are not touched. */
async function changeAll(verb, filter, me, again) {
  try {
    const { count, has_more: isMore, now: before } = await api.get("/v1/jobs:count", filter);
    if (!count) return toast(t("jobs.none"));
    const names = { state: t("jobs.state"), kind: t("jobs.kind"), q: t("jobs.text"), reason: t("jobs.why") };
    const covers = Object.fromEntries(Object.entries(filter).map(([name, value]) => [names[name], name === "state" ? word("job_state", value) : value]));
    const id = randomKey();
    await bulk({ ...dialogOf(verb, count), covers, until: moment(before), isMore, fields: fieldsOf(verb), step: (expected, cursor, options, given) => changeSome(verb, { filter, before, expected, cursor, by: actorOf(me), ...orderOf(verb, given, id) }, options) });
  } catch (error) {
    toastError(error);
  }
  return again();
}

const line = (name, label, hint) => field({ label, hint }, h("input", { name, required: true, maxlength: LONGEST_REASON, autocomplete: "off" }));

function fieldsOf(verb) {
  if (verb === "signal") return [...signalFields(), ...reason(false)];
  if (verb === "reset") return [line("from", t("jobs.step"), t("jobs.step_hint")), ...reason(false)];
  if (verb === "resolve") return [line("unit", t("jobs.unit"), t("jobs.unit_hint")), ...outcomeFields(), ...reason(false)];
  return reason(verb !== "resume");
}

/** Returns what the API gets of what was written. `id`: a signal is not sent twice with it. */
function orderOf(verb, { name, data, from, unit, outcome, result, reason }, id) {
  if (verb === "signal") return { name, data: typedValue(data), id };
  if (verb === "reset") return { from };
  if (verb === "resolve") return { unit, outcome, ...(outcome === "done" && { result: typedValue(result) }) };
  return verb === "resume" || !reason ? {} : { reason };
}

async function changeSome(verb, body, options) {
  const { changed, unchanged, refused, next } = await api.post(`/v1/jobs:${verb}`, body, options);
  return { changed, next, unchanged: unchanged + Object.values(refused).reduce((sum, one) => sum + one, 0) };
}

const count = (state, n) => h("li", { key: state }, h("a", { href: `#/jobs?state=${state}` }, t("jobs.count", { state: word("job_state", state), n })));

/** A page of the API ends with a shard and may be short, even empty: more are read until there are enough rows. */
async function load(filters, cursor, signal, showCounts) {
  const rows = [];
  let next = cursor;
  do {
    const page = await api.get("/v1/jobs", { ...filters, cursor: next, limit: PAGE }, { signal });
    rows.push(...page.jobs);
    next = page.next;
    showCounts(page.counts);
  } while (next && rows.length < PAGE);
  return { rows, next };
}

/** Why a job does not run, in words; "" if nothing is known. */
export function why({ paused_by: by, reason }) {
  if (!by) return reason ? said(reason) : "";
  const who = word("job_actor", by);
  return reason ? t("jobs.paused_because", { who, reason }) : t("jobs.paused_by", { who });
}

/** Asks for the reason and changes these jobs. Returns whether anything was begun. */
export const change = (verb, ids, me) => bulk({
  ...dialogOf(verb, ids.length), fields: reason(verb === "pause" || verb === "stop"),
  step: eachOf(ids, (id, options, { reason }) => changeOne(verb, id, reason, me, options)),
});

function changeOne(verb, id, reason, me, options) {
  const by = actorOf(me);
  const [kind, ...user] = id.split(".");
  if (verb === "start") return api.post("/v1/jobs", { kind, user: user.join("."), by }, options);
  return api.post(`/v1/jobs/${encodeURIComponent(id)}:${verb}`, reason ? { by, reason } : { by }, options);
}
