/**
 * Jobs of people: state, next run, why one does not run; pause, resume, stop and start those that are chosen. All that the filters
 * find are counted, and then paused, resumed, stopped, or repeated from a step, up to the moment at which they were counted.
 */

import { field, h, paint } from "../lib/dom.js";
import { moment, number, said, t, word, ago, fullMoment } from "../lib/words.js";
import { api, randomKey } from "../lib/api.js";
import { tag, toast, toastError, fact, notice, withStates } from "../lib/page.js";
import { table } from "../lib/table.js";
import { bulk, eachOf, reasonField } from "../lib/dialog.js";
import { follow } from "../lib/live.js";
import { outcomeFields, signalFields, typedValue, query, sendSignal, shownJson, signalsOf, stored, waiting } from "./job_stored.js";

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

// one of them

const TIMES = ["created_at", "changed_at", "last_run", "next_run", "resumes_at"];
const TEXTS = ["kind", "user", "iterations", "timezone"];
const KEPT_LINES = 1000;
const PAINT_PAUSE = 250;
const REREAD_PAUSE = 500;
const RECONNECT_PAUSE = 3000;
const AGAIN_MS = 5000;
const NEAR_THE_END = 40;

/** One job: its state and why, what it waits for, its parameters, steps, effects, children and log; what can be done with it. */
export const job = {
  title: "page.job",
  right: "inspect",
  render(root, [id], context) {
    const { me, signal, title } = context;
    title(id);
    const path = `/v1/jobs/${encodeURIComponent(id)}`, head = h("div"), lists = h("div"), log = h("div");
    paint(root, head, lists, log);
    let isFollowed = false;
    const reread = stored(lists, path, context, mayManage(me) && actorOf(me), () => again());
    const again = withStates(head, () => api.get(path, {}, { signal }), (job) => {
      if (!isFollowed) followLog(log, path, later(again, signal), signal);
      else reread();
      isFollowed = true;
      return record(job, path, me, again);
    });
    // A job that begins to wait writes no line.
    const timer = setInterval(() => document.visibilityState === "visible" && again(), AGAIN_MS);
    return () => clearInterval(timer);
  },
};

/** Returns a function that calls `work` once, soon, however often it is called until then. */
function later(work, signal) {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return () => { timer ||= setTimeout(() => { timer = 0; work(); }, REREAD_PAUSE); };
}

const named = (key, value) => [h("h2", {}, t(key)), h("pre", { tabindex: 0, "aria-label": t(key) }, shownJson(value))];

const linkOf = (id) => h("a", { href: `#/job/${encodeURIComponent(id)}` }, id);

function record(job, path, me, again) {
  const reason = why(job), by = actorOf(me);
  return [
    h("h1", {}, job.id, " ", stateTag(job.state)),
    reason && notice(job.state === "failed" ? "bad" : ["stopped", "finished"].includes(job.state) ? "info" : "warn", reason),
    job.waits_for && notice("info", waiting(job)),
    h("div", { class: "actions" },
      mayManage(me) && ["running", "paused"].includes(job.state) && (signalsOf(job).length ? signalsOf(job) : [""]).map((name) => h("button", {
        key: `signal ${name}`, class: name ? "primary" : "", onclick: async () => { if (await sendSignal(path, name, by)) again(); },
      }, name ? t("job.signal_named", { name }) : t("job.signal"))),
      mayManage(me) && VERBS[job.state].map((verb) => h("button", {
        key: verb, class: verb === "stop" ? "danger" : verb === "pause" ? "" : "primary",
        onclick: async () => { if (await change(verb, [job.id], me)) again(); },
      }, t(`jobs.${verb}`))),
      h("button", { key: "query", onclick: () => query(path) }, t("job.query"))),
    h("h2", {}, t("job.record")),
    h("dl", { class: "facts" },
      TEXTS.map((name) => fact(`job.${name}`, typeof job[name] === "number" ? number(job[name]) : job[name])),
      job.parent && fact("job.parent", linkOf(job.parent)),
      job.children?.length > 0 && fact("job.children", job.children.map((one) => [linkOf(one), " "])),
      TIMES.filter((name) => job[name]).map((name) => fact(`job.${name}`, h("span", { title: fullMoment(job[name]) }, moment(job[name]), " (", ago(job[name]), ")")))),
    Object.keys(job.parameters).length > 0 && named("job.parameters", job.parameters),
    "own_state" in job && named("job.own_state", job.own_state),
    "result" in job && named("job.result", job.result),
  ];
}

/**
 * Shows the log in `root` as it is written and calls `changed` after new lines. While the tab is hidden nothing is read; then it
 * goes on after the last line that was seen.
 */
function followLog(root, path, changed, signal) {
  const away = h("p", { class: "quiet", hidden: true, role: "status" }, t("job.log_away"));
  const nothing = h("p", { class: "quiet" }, t("job.log_empty"));
  const lines = h("div", { class: "log panel", role: "log", tabindex: 0, "aria-label": t("job.log") }, nothing);
  paint(root, h("h2", {}, t("job.log")), away, lines);
  let stream = null, seen = 0, timer = 0, paintTimer = 0, pending = [];

  function receive({ data, lastEventId }) {
    const id = Number(lastEventId);
    // A smaller number: the log was begun anew.
    if (seen === 0 || id <= seen) { pending = []; lines.replaceChildren(); }
    seen = id;
    pending.push(JSON.parse(data));
    paintTimer ||= setTimeout(show, PAINT_PAUSE);
  }

  function show() {
    const isAtEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < NEAR_THE_END;
    lines.append(...pending.map(({ at, text }) => h("p", {}, h("time", { datetime: at, title: fullMoment(at), class: "quiet" }, moment(at)), " ", said(text))));
    while (lines.childElementCount > KEPT_LINES) lines.firstElementChild.remove();
    if (isAtEnd) lines.scrollTop = lines.scrollHeight;
    paintTimer = 0;
    pending = [];
    changed();
  }

  function open() {
    clearTimeout(timer);
    stream = new EventSource(`${path}/log?after=${seen}`);
    stream.addEventListener("line", receive);
    stream.onopen = () => { away.hidden = true; };
    stream.onerror = () => {
      away.hidden = false;
      if (stream.readyState === EventSource.CLOSED) timer = setTimeout(follow, RECONNECT_PAUSE);
    };
  }

  function close() {
    clearTimeout(timer);
    stream?.close();
    stream = null;
  }

  function follow() {
    close();
    if (document.visibilityState === "visible") open();
  }

  follow();
  document.addEventListener("visibilitychange", follow, { signal });
  signal.addEventListener("abort", () => { close(); clearTimeout(paintTimer); }, { once: true });
}
