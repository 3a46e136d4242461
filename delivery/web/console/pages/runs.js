/** Runs of scenarios: those of a person by scenario, state and day; one run with its steps, why each ran or not, as it goes on. */

import { h, paint } from "../lib/dom.js";
import { fullMoment, moment, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { notice, tag, withStates } from "../lib/states.js";
import { table } from "../lib/table.js";
import { inZone } from "../lib/draft.js";

const STATES = ["running", "over", "with_faults"];
const COLOURS = { completed: "good", failed: "bad", unknown: "warn", pending: "info" };
const PAGE = 20;
const REREAD_PAUSE = 2000;
// What a parked run waits for, if it is no delivery.
const SLOW = "slow";

const isFaulty = (step) => step.state === "failed" || step.state === "unknown";
const stateTag = (state) => tag(state === "running" ? "info" : "", word("run_state", state));

export default {
  title: "page.runs",
  right: "inspect",
  render(root, [id], context) {
    return id ? showRun(root, id, context) : showList(root, context);
  },
};

async function showList(root, context) {
  const { channels } = await api.get("/v1/channels", {}, { signal: context.signal });
  const place = h("div");
  paint(root, h("h1", {}, t("page.runs")), h("p", { class: "quiet" }, t("runs.how")), place);
  table(place, {
    label: t("page.runs"), context, id: (row) => row.id, href: (row) => `#/runs/${encodeURIComponent(row.id)}`,
    filters: [
      { name: "channel", label: t("runs.channel"), options: channels.map(({ channel }) => [channel, word("channel", channel)]) },
      { name: "user", label: t("runs.user"), type: "search" },
      { name: "scenario", label: t("runs.scenario"), type: "search" },
      { name: "state", label: t("runs.state"), options: [["", t("runs.any")], ...STATES.map((state) => [state, word("run_state", state)])] },
      { name: "since", label: t("runs.since"), type: "date" },
    ],
    columns: [
      { title: t("runs.scenario"), width: "2fr", name: namesOf, cell: namesOf },
      { title: t("runs.began"), width: "8rem", cell: (row) => moment(row.began) },
      { title: t("runs.state"), width: "8rem", cell: (row) => stateTag(row.state) },
      { title: t("runs.event"), width: "2fr", cell: (row) => h("span", { class: "cut", dir: "auto" }, row.event.event_text || "–") },
      { title: t("runs.faults"), width: "2fr", cell: faults },
    ],
    load: ({ cursor, signal, ...filters }) => load(filters, cursor, signal, context.me.timezone),
    whenEmpty: { title: t("runs.choose"), text: t("runs.choose_text") },
  });
}

const namesOf = ({ scenarios, id }) => scenarios.join(", ") || id;

function faults({ actions }) {
  const count = actions.filter(isFaulty).length;
  return count ? tag("bad", t("runs.faulty", { count })) : t("runs.no_faults");
}

/** The API finds the runs of a person, the newest first; scenario, state and day are looked for among them here. */
async function load({ channel, user, scenario, state, since }, cursor, signal, zone) {
  if (!channel || !user) return { rows: [], next: null };
  const begin = since ? Date.parse(inZone(`${since}T00:00`, zone)) : 0;
  const fits = (run) => Date.parse(run.began) >= begin && (!scenario || namesOf(run).includes(scenario))
    && (!state || run.state === state || (state === "with_faults" && run.actions.some(isFaulty)));
  const rows = [];
  let next = cursor;
  do {
    const page = await api.get("/v1/runs", { user: `${channel}:${user}`, cursor: next, limit: PAGE }, { signal });
    rows.push(...page.runs.filter(fits));
    next = page.runs.some((run) => Date.parse(run.began) < begin) ? null : page.next;
  } while (next && rows.length < PAGE);
  return { rows, next };
}

function showRun(root, id, { signal }) {
  let isOver = false;
  const show = withStates(root, () => api.get(`/v1/runs/${encodeURIComponent(id)}`, {}, { signal }), (run) => {
    isOver = run.state === "over";
    return whole(run);
  });
  const timer = setInterval(() => !isOver && document.visibilityState === "visible" && show(), REREAD_PAUSE);
  return () => clearInterval(timer);
}

function whole(run) {
  const [channel, ...user] = run.person.split(":");
  const others = `#/runs?${new URLSearchParams({ channel, user: user.join(":") })}`;
  return [
    h("h1", {}, namesOf(run), " ", stateTag(run.state)),
    h("p", { class: "quiet" }, run.id),
    h("dl", { class: "facts" },
      fact("runs.person", h("a", { href: others }, run.person)),
      fact("runs.began", fullMoment(run.began)),
      run.ended && fact("runs.ended", fullMoment(run.ended)),
      fact("runs.version", h("code", {}, run.version)),
      run.event.event_text && fact("runs.event", h("span", { dir: "auto" }, run.event.event_text))),
    values("event", t("runs.event_fields"), run.event),
    h("h2", {}, t("runs.steps")),
    h("ol", { class: "steps" }, run.actions.map(step)),
  ];
}

const fact = (key, value) => h("div", {}, h("dt", {}, t(key)), h("dd", {}, value));

function step(one) {
  const delivery = one.results.delivery_id || (one.waits_for !== SLOW && one.waits_for);
  return h("li", { class: "card", key: `step ${one.n}` },
    h("h3", {}, t("runs.step", { n: one.n, type: one.type }), " ", tag(COLOURS[one.state] || "", word("step_state", one.state))),
    h("p", {}, one.why),
    // `why` of most failed steps ends with the error.
    one.error && !one.why.includes(one.error) && notice("bad", one.error),
    one.waits_for && h("p", {}, one.waits_for === SLOW ? t("runs.waits_slow") : t("runs.waits_delivery")),
    one.send?.text && h("blockquote", { class: "said", dir: "auto" }, one.send.text),
    delivery && h("p", {}, h("a", { href: `#/message/${encodeURIComponent(delivery)}` }, t("runs.delivery"))),
    h("p", { class: "quiet small" }, [one.scenario, one.place, (one.ended_at || one.moved_at) && fullMoment(one.ended_at || one.moved_at)].filter(Boolean).join(" · ")),
    values("given", t("runs.given"), one.given),
    values("results", t("runs.results"), one.results));
}

/** Fields with their values, folded; nothing if there are none. */
const values = (key, title, fields) => Object.keys(fields).length > 0 && h("details", { key },
  h("summary", {}, title), h("pre", { tabindex: 0, "aria-label": title }, JSON.stringify(fields, null, 2)));
