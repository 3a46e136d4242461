/** Runs of scenarios: by scenario, state, person and day; one run with its path, why each step ran or not, as it goes on. */

import { h, paint } from "../lib/dom.js";
import { fullMoment, moment, said, t, translated, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { fact, notice, tag, toast, toastError, withStates } from "../lib/page.js";
import { table } from "../lib/table.js";
import { bulk, eachOf, reasonField } from "../lib/dialog.js";
import { follow } from "../lib/live.js";
import { graph, statesOf } from "../lib/graph.js";
import { inZone } from "../lib/draft.js";
import { mayManage } from "./jobs.js";
import { botInForce } from "./scenarios.js";

const STATES = ["running", "over", "dropped", "with_faults"];
const COLOURS = { completed: "good", failed: "bad", unknown: "warn", pending: "info" };
const RUN_COLOURS = { running: "info", dropped: "warn" };
const PAGE = 50;
const REREAD_PAUSE = 2000;
const MOST_DRAWN = 3;
const LONGEST_REASON = 256;
// What a parked run waits for, if it is no delivery.
const SLOW = "slow";

const stateTag = (state) => tag(RUN_COLOURS[state] || "", word("run_state", state));

export default {
  title: "page.runs",
  right: "inspect",
  render(root, [id], context) {
    return id ? showRun(root, id, context) : showList(root, context);
  },
};

async function showList(root, context) {
  const [{ channels }, bot] = await Promise.all([api.get("/v1/channels", {}, { signal: context.signal }), botInForce(context.signal)]);
  const place = h("div"), memory = h("div"), names = bot ? bot.scenarios.map(({ name }) => name) : [];
  paint(root, h("h1", {}, t("page.runs")), memory, place);
  const list = table(place, {
    label: t("page.runs"), context, id: (row) => row.id, href: (row) => `#/runs/${encodeURIComponent(row.id)}`,
    filters: [
      { name: "scenario", label: t("runs.scenario"), options: [["", t("runs.any")], ...[...new Set([...names, context.query.scenario])].filter(Boolean).map((name) => [name, name])] },
      { name: "state", label: t("runs.state"), options: [["", t("runs.any")], ...STATES.map((state) => [state, word("run_state", state)])] },
      { name: "channel", label: t("runs.channel"), options: [["", t("runs.any")], ...channels.map(({ channel }) => [channel, word("channel", channel)])] },
      { name: "user", label: t("runs.user"), type: "search" },
      { name: "since", label: t("runs.since"), type: "date" },
      { name: "until", label: t("runs.until"), type: "date" },
    ],
    columns: [
      { title: t("runs.scenario"), width: "2fr", name: namesOf, cell: namesOf },
      { title: t("runs.person"), width: "1.5fr", cell: (row) => (row.name ? h("span", { title: row.person }, row.name) : row.person) },
      { title: t("runs.began"), width: "8rem", cell: (row) => moment(row.began) },
      { title: t("runs.state"), width: "8rem", cell: (row) => stateTag(row.state) },
      { title: t("runs.event"), width: "2fr", cell: (row) => h("span", { class: "cut", dir: "auto" }, row.text || "–") },
      { title: t("runs.faults"), width: "2fr", cell: ({ faults }) => (faults ? tag("bad", t("runs.faulty", { count: faults })) : t("runs.no_faults")) },
    ],
    load: ({ cursor, signal, ...filters }) => {
      if (!cursor) showMemory(memory, filters, signal);
      return load(filters, cursor, signal, context.me.timezone);
    },
    actions: mayManage(context.me) ? [{ title: t("runs.drop"), danger: true, run: (ids) => drop(ids) }] : undefined,
    whenEmpty: { title: t("runs.none"), text: t("runs.none_text") },
  });
  follow(["runs"], () => list.update(), context.signal);
}

/** Above the runs of one person stands what the bot remembers of it. */
async function showMemory(place, { channel, user }, signal) {
  const found = channel && user ? await remembered(`${channel}:${user}`, signal).catch(() => null) : null;
  if (!signal.aborted) paint(place, found && values("variables", t("runs.remembered"), found));
}

const namesOf = ({ scenarios, id }) => scenarios.join(", ") || id;

/** A page of the API may be short, even empty, while there are more: they are read until there are enough rows. */
async function load({ channel, user, since, until, ...filters }, cursor, signal, zone) {
  if (user && !channel) return { rows: [], next: null };
  const begin = since && inZone(`${since}T00:00`, zone), end = until && inZone(`${until}T23:59:59`, zone);
  const person = user ? `${channel}:${user}` : "";
  const rows = [];
  let next = cursor;
  do {
    const page = await api.get("/v1/runs", { ...filters, person, since: begin, until: end, cursor: next, limit: PAGE }, { signal });
    rows.push(...page.runs.filter((run) => !channel || run.person.startsWith(`${channel}:`)));
    next = page.next;
  } while (next && rows.length < PAGE);
  return { rows, next };
}

/** Asks for the reason, which goes to the action log, and drops these runs. Returns whether anything was begun. */
const drop = (ids) => bulk({
  title: t("runs.drop_title", { count: ids.length }), text: t("runs.drop_text"), action: t("runs.drop"), danger: true, count: ids.length,
  fields: [reasonField({ required: true, maxlength: LONGEST_REASON })],
  changed: (count) => t("runs.dropped", { count }), unchanged: (count) => t("runs.not_dropped", { count }),
  step: eachOf(ids, (id, options) => api.post(`/v1/runs/${encodeURIComponent(id)}:drop`, undefined, options)),
});

async function driveOn(id, again) {
  try {
    await api.post(`/v1/runs/${encodeURIComponent(id)}:drive`);
    toast(t("runs.driven"));
    again();
  } catch (error) {
    toastError(error);
  }
}

function showRun(root, id, { signal, me }) {
  let isOver = false, drawn = null;
  const show = withStates(root, async () => {
    const run = await api.get(`/v1/runs/${encodeURIComponent(id)}`, {}, { signal });
    run.remembered = await remembered(run.person, signal).catch(() => null);
    drawn ||= await Promise.all(run.scenarios.slice(0, MOST_DRAWN).map((name) => api.get(`/v1/scenarios/${encodeURIComponent(name)}`, { version: run.version }, { signal }).catch(() => null)));
    return run;
  }, (run) => {
    isOver = run.state !== "running";
    return whole(run, drawn, mayManage(me) && !isOver, show);
  });
  const timer = setInterval(() => !isOver && document.visibilityState === "visible" && show(), REREAD_PAUSE);
  follow(["runs"], () => isOver || show(), signal);
  return () => clearInterval(timer);
}

function whole(run, drawn, mayChange, again) {
  const [channel, ...user] = run.person.split(":");
  const others = `#/runs?${new URLSearchParams({ channel, user: user.join(":") })}`;
  const toStep = (node) => { const one = run.actions.find((action) => action.node === node); const card = one && document.getElementById(`step-${one.n}`); card?.scrollIntoView({ block: "nearest" }); card?.focus(); };
  return [
    h("h1", {}, namesOf(run), " ", stateTag(run.state)),
    h("p", { class: "quiet" }, run.id),
    run.state === "dropped" && notice("warn", t("runs.was_dropped")),
    mayChange && h("div", { class: "actions" },
      h("button", { onclick: () => driveOn(run.id, again) }, t("runs.drive")),
      h("button", { class: "danger", onclick: async () => { if (await drop([run.id])) again(); } }, t("runs.drop"))),
    h("dl", { class: "facts" },
      fact("runs.person", h("a", { href: others }, run.name ? `${run.name} (${run.person})` : run.person)),
      fact("runs.began", fullMoment(run.began)),
      run.ended && fact("runs.ended", fullMoment(run.ended)),
      fact("runs.version", h("code", {}, run.version)),
      run.event.event_text && fact("runs.event", h("span", { dir: "auto" }, run.event.event_text))),
    values("event", t("runs.event_fields"), run.event),
    run.remembered && values("variables", t("runs.remembered"), run.remembered),
    drawn.filter(Boolean).map((one) => h("section", { key: one.name }, h("h2", {}, t("runs.path", { name: one.name })),
      graph(one, { label: t("scenarios.graph", { name: one.name }), states: statesOf(run.actions), choose: toStep }))),
    h("h2", {}, t("runs.steps")),
    h("ol", { class: "steps" }, run.actions.map(step)),
  ];
}

function step(one) {
  const delivery = one.results.delivery_id || (one.waits_for !== SLOW && one.waits_for);
  return h("li", { class: "card", key: `step ${one.n}`, id: `step-${one.n}`, tabindex: -1 },
    h("h3", {}, t("runs.step", { n: one.n, type: one.type }), " ", tag(COLOURS[one.state] || "", word("step_state", one.state))),
    h("p", {}, said(one.why, { [one.error]: translated(one, "error") })),
    // `why` of most failed steps ends with the error.
    one.error && !one.why.includes(one.error) && notice("bad", translated(one, "error")),
    one.waits_for && h("p", {}, one.waits_for === SLOW ? t("runs.waits_slow") : t("runs.waits_delivery")),
    one.send?.text && h("blockquote", { class: "said", dir: "auto" }, one.send.text),
    delivery && h("p", {}, h("a", { href: `#/message/${encodeURIComponent(delivery)}` }, t("runs.delivery"))),
    h("p", { class: "quiet small" }, [one.scenario, one.place, (one.ended_at || one.moved_at) && fullMoment(one.ended_at || one.moved_at)].filter(Boolean).join(" · ")),
    values("given", t("runs.given"), one.given),
    values("results", t("runs.results"), one.results));
}

/** Returns what the bot remembers of a person (`channel:user_id`): its variables, and its answers to each form. */
export const remembered = (person, signal) => api.get("/v1/variables", { person }, { signal }).then(({ variables, forms }) => ({ ...variables, ...forms }));

/** Fields with their values, folded; nothing if there are none. */
const values = (key, title, fields) => Object.keys(fields).length > 0 && h("details", { key },
  h("summary", {}, title), h("pre", { tabindex: 0, "aria-label": title }, JSON.stringify(fields, null, 2)));
