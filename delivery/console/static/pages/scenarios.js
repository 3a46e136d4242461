/** The bot in force: its version, what is wrong in its files, what starts what; one scenario as a graph. */

import { h, paint } from "../lib/dom.js";
import { ago, fullMoment, moment, number, said, t, translated, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { empty, fact, notice, tag, withStates } from "../lib/page.js";
import { table } from "../lib/table.js";
import { graph } from "../lib/graph.js";

const REREAD_PAUSE = 3000;

export default {
  title: "page.scenarios",
  right: "inspect",
  render(root, [name], context) {
    return name ? showScenario(root, name, context) : showBot(root, context);
  },
};

/** Returns the bot in force; null if no process has loaded one. */
export const botInForce = (signal) => api.get("/v1/bots", {}, { signal }).catch((error) => {
  if (error.code === "BOT_NOT_LOADED") return null;
  throw error;
});

export const noBot = () => empty({ title: t("scenarios.none"), text: t("scenarios.none_text"), action: h("code", {}, "ADA_SCENARIOS=my-bot ./ada up") });

const link = (name) => h("a", { href: `#/scenarios/${encodeURIComponent(name)}` }, name);

function showBot(root, context) {
  const head = h("div"), lists = h("div"), others = h("div"), bots = h("div");
  paint(root, h("h1", {}, t("page.scenarios")), head, others, bots, lists);
  withStates(others, () => api.get("/v1/bots:all", {}, { signal: context.signal }), (found) => allBots(bots, found.bots, context));
  let shown = "";
  const again = withStates(head, () => botInForce(context.signal), (bot) => {
    if (!bot) return noBot();
    const { loaded_at: _, ...facts } = bot, now = JSON.stringify(facts);
    if (now !== shown) showLists(lists, bot, context);
    shown = now;
    return summary(bot);
  });
  const timer = setInterval(() => document.visibilityState === "visible" && again(), REREAD_PAUSE);
  return () => clearInterval(timer);
}

/** Lists the bots of all tenants in `place`, and returns the heading, if there are several, or if one has stopped in part. */
function allBots(place, bots, context) {
  if (bots.length < 2 && !bots.some((one) => one.stopped.length)) return null;
  table(place, { label: t("scenarios.tenants"), context, id: (row) => row.tenant, load: async () => ({ rows: bots, next: null }),
    columns: [
      { title: t("scenarios.tenant"), width: "1fr", cell: (row) => row.tenant },
      { title: t("scenarios.version"), width: "11rem", cell: (row) => (row.version ? h("code", {}, row.version) : "–") },
      { title: t("scenarios.errors"), class: "number", width: "7rem", cell: (row) => number(row.problem_count) },
      { title: t("scenarios.stopped"), width: "3fr", cell: (row) => (row.stopped.length ? row.stopped.map(stopped) : "–") },
    ] });
  return h("h2", {}, t("scenarios.bots", { count: bots.length }));
}

const stopped = ({ part, reason, since }) => h("div", {}, tag("bad", part), " ", said(reason), " ", h("span", { class: "quiet", title: fullMoment(since) }, ago(since)));

function summary(bot) {
  const errors = bot.problems.filter((one) => one.severity === "error").length;
  return [
    errors > 0 && notice("bad", bot.is_good ? t("scenarios.last_good", { count: errors }) : t("scenarios.with_mistakes", { count: errors })),
    h("dl", { class: "facts" },
      fact("scenarios.version", h("code", {}, bot.version)),
      fact("scenarios.since", h("span", { title: fullMoment(bot.loaded_at) }, ago(bot.loaded_at))),
      fact("scenarios.folder", h("code", {}, bot.folder)),
      fact("scenarios.by_dialog", bot.commands.by_dialog.join(", ")),
      bot.commands.by_bot[0] && fact("scenarios.by_bot", bot.commands.by_bot.join(", "))),
    h("div", { class: "actions" },
      h("a", { class: "button primary", href: "#/dry_run" }, t("page.dry_run")),
      h("a", { class: "button", href: "#/runs" }, t("page.runs"))),
  ];
}

const holds = (row, text) => !text || JSON.stringify(row).toLowerCase().includes(text.toLowerCase());

function showLists(root, bot, context) {
  const places = [h("div"), h("div"), h("div"), h("div")];
  root.replaceChildren();
  paint(root,
    bot.problem_count > 0 && [h("h2", {}, t("scenarios.problems", { count: bot.problem_count })), places[0]],
    h("h2", {}, t("scenarios.all", { count: bot.scenarios.length })), places[1],
    bot.schedules.length > 0 && [h("h2", {}, t("scenarios.schedule")), places[3]],
    h("h2", {}, t("scenarios.triggers", { count: bot.triggers.length })), places[2]);
  if (bot.schedules.length > 0) {
    table(places[3], { label: t("scenarios.schedule"), context, id: (row) => row.name, load: async () => ({ rows: bot.schedules, next: null }),
      columns: [
        { title: t("job.name"), width: "1fr", cell: (row) => row.name },
        { title: t("scenarios.time"), width: "1.5fr", cell: (row) => row.words },
        { title: t("scenarios.next"), width: "2fr", cell: (row) => (row.next.length ? row.next.map((at) => h("div", {}, moment(at))) : t("scenarios.before", { name: row.before })) },
        { title: t("scenarios.whom"), width: "1fr", cell: (row) => targetOf(row.target) },
        { title: t("scenarios.starts"), width: "1.5fr", cell: (row) => link(row.scenario) },
        { title: t("scenarios.place"), width: "1.5fr", cell: (row) => row.place },
      ] });
  }
  if (bot.problem_count > 0) {
    table(places[0], { label: t("scenarios.problem"), context, id: (row) => `${placeOf(row)} ${row.code} ${row.message}`, load: async () => ({ rows: bot.problems, next: null }),
      columns: [
        { title: t("scenarios.place"), width: "1.5fr", cell: placeOf },
        { title: t("scenarios.severity"), width: "7rem", cell: (row) => tag(row.severity === "error" ? "bad" : "warn", word("severity", row.severity)) },
        { title: t("scenarios.problem"), width: "3fr", cell: (row) => translated(row, "message") },
      ] });
  }
  table(places[1], { label: t("page.scenarios"), context, id: (row) => row.name, href: (row) => `#/scenarios/${encodeURIComponent(row.name)}`,
    filters: [{ name: "q", label: t("scenarios.search"), type: "search" }],
    load: async ({ q }) => ({ rows: bot.scenarios.filter((row) => holds(row, q)), next: null }),
    columns: [
      { title: t("scenarios.name"), width: "2fr", cell: (row) => row.name },
      { title: t("scenarios.steps"), class: "number", width: "6rem", cell: (row) => number(row.actions) },
      { title: t("scenarios.place"), width: "2fr", cell: (row) => row.place },
    ] });
  table(places[2], { label: t("scenarios.trigger"), context, id: (row) => [row.chats, row.event, row.kind, row.key, row.scenario, row.place].join(" "),
    filters: [{ name: "trigger", label: t("scenarios.search_trigger"), type: "search" }],
    load: async ({ trigger }) => ({ rows: bot.triggers.filter((row) => holds(row, trigger)), next: null }),
    columns: [
      { title: t("scenarios.trigger"), width: "2fr", cell: (row) => [word("event_kind", row.event), ": ", h("strong", { dir: "auto" }, row.key || t("scenarios.any_text")), " ", row.continues && tag("", t("scenarios.continues"))] },
      { title: t("scenarios.compared"), width: "8rem", cell: (row) => row.kind },
      { title: t("scenarios.chats"), width: "9rem", cell: (row) => row.from_chat.join(", ") || (row.chats ? word("chats", row.chats) : "–") },
      { title: t("scenarios.starts"), width: "1.5fr", cell: (row) => link(row.scenario) },
      { title: t("scenarios.place"), width: "1.5fr", cell: (row) => row.place },
    ] });
}

const targetOf = (target) => (target === null ? t("scenarios.once") : target === "people" ? t("scenarios.people") : Object.values(target).join(", "));

const placeOf = ({ file, line, column }) => `${file}:${line}:${column}`;

// one scenario

function showScenario(root, name, { signal, title }) {
  title(name);
  withStates(root, () => api.get(`/v1/scenarios/${encodeURIComponent(name)}`, {}, { signal }), (one) => {
    const choose = (id) => {
      const { n, scenario } = one.nodes.find((node) => node.id === id);
      if (n === 0) return void (location.hash = `#/scenarios/${encodeURIComponent(scenario)}`);
      paint(root, whole(one, id, choose));
      root.querySelector(".step-fields").scrollIntoView({ block: "nearest" });
    };
    return whole(one, null, choose);
  });
}

function whole(one, chosen, choose) {
  const step = one.nodes.find((node) => node.id === chosen);
  return [
    h("h1", {}, one.name),
    h("p", { class: "quiet" }, one.place),
    h("div", { class: "actions" },
      h("a", { class: "button", href: `#/runs?${new URLSearchParams({ scenario: one.name })}` }, t("page.runs")),
      h("a", { class: "button", href: "#/scenarios" }, t("page.scenarios"))),
    h("p", { class: "hint" }, t("scenarios.choose_step")),
    one.nodes.length === 0 && empty({ title: t("scenarios.no_steps") }),
    graph(one, { label: t("scenarios.graph", { name: one.name }), chosen, choose }),
    h("div", { class: "step-fields", "aria-live": "polite", key: "fields" }, step && fieldsOf(step)),
    one.left_out > 0 && notice("warn", t("scenarios.left_out", { count: one.left_out })),
    one.unknown.length > 0 && notice("info", t("scenarios.unknown", { names: one.unknown.join(", ") })),
    steps(one, choose),
  ];
}

const fieldsOf = (step) => h("section", { class: "panel" },
  h("h2", {}, t("runs.step", { n: step.n, type: step.type })),
  h("p", { class: "quiet small" }, [step.scenario, step.place].join(" · ")),
  step.chain && h("p", {}, t("scenarios.chain", { outcomes: step.chain })),
  step.chain_drop && h("p", {}, t("scenarios.chain_drop", { outcomes: step.chain_drop })),
  h("pre", { tabindex: 0, "aria-label": t("scenarios.fields") }, step.yaml || "–"));

/** The table behind the drawing. */
const steps = ({ nodes, edges }, choose) => h("details", { key: "steps" }, h("summary", {}, t("scenarios.as_table")),
  h("div", { class: "wide-table", tabindex: 0, role: "group", "aria-label": t("scenarios.as_table") }, h("table", {},
    h("thead", {}, h("tr", {}, ["scenarios.step", "scenarios.after", "scenarios.says"].map((key) => h("th", { scope: "col" }, t(key))))),
    h("tbody", {}, nodes.map((node) => h("tr", { key: node.id },
      h("th", { scope: "row" }, h("button", { class: "plain", onclick: () => choose(node.id) }, node.n ? `${node.id} ${node.type}` : node.scenario)),
      h("td", {}, edges.filter((edge) => edge.target === node.id).map((edge) => `${edge.source} (${edge.label})`).join(", ") || t("scenarios.at_once")),
      h("td", { dir: "auto" }, node.title)))))));
