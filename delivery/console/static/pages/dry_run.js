/** What the bot would do with an event: nothing is sent. The event is typed, or taken from a run that has happened; outcomes can be set. */

import { field, h, paint, values } from "../lib/dom.js";
import { moment, said, t, translated, word } from "../lib/words.js";
import { ApiError, api } from "../lib/api.js";
import { notice, submits, tag, withStates } from "../lib/page.js";
import { graph, statesOf } from "../lib/graph.js";
import { botInForce, noBot } from "./scenarios.js";
import { shownIn } from "./write_check.js";

const KINDS = ["text", "callback", "new_member", "left_member", "changed_member", "join_request", "edited", "inline_query", "answer", "reply"];
const CHATS = ["private", "group", "supergroup"];
const OUTCOMES = ["completed", "failed", "unknown"];
const TYPED = ["channel", "user_id", "kind", "chat_type", "user_state"];
const COLOURS = { completed: "good", failed: "bad", unknown: "warn" };
const RECENT = 20;

export default {
  title: "page.dry_run",
  right: "inspect",
  render(root, parameters, { signal }) {
    const place = h("div");
    paint(root, h("h1", {}, t("page.dry_run")), h("p", { class: "quiet" }, t("dry_run.how")), place);
    withStates(place, async () => {
      const [bot, { channels }, { runs }] = await Promise.all([botInForce(signal), api.get("/v1/channels", {}, { signal }), api.get("/v1/runs", { limit: RECENT }, { signal })]);
      return { bot, channels, runs };
    }, ({ bot, channels, runs }) => (bot ? whole(channels, runs, signal) : noBot()));
  },
};

function whole(channels, runs, signal) {
  const result = h("div", { "aria-live": "polite" });
  const set = { fail: new Set(), unknown: new Set() };
  const form = h("form", { class: "panel", onsubmit: submits(async () => { set.fail.clear(); set.unknown.clear(); await play(form, set, result, signal); result.scrollIntoView({ block: "nearest" }); }) },
    runs.length > 0 && field({ label: t("dry_run.recent"), hint: t("dry_run.recent_hint") }, h("select", { name: "run", onchange: (event) => take(form, event.target.value, signal) },
      h("option", { value: "" }, t("dry_run.new")),
      runs.map((run) => h("option", { value: run.id }, [moment(run.began), run.name || run.person, run.text].filter(Boolean).join(" · "))))),
    h("div", { class: "button-row" },
      field({ label: t("runs.channel") }, choice("channel", channels.map(({ channel }) => [channel, word("channel", channel)]))),
      field({ label: t("runs.user") }, h("input", { name: "user_id", required: true, value: "1", autocomplete: "off" })),
      field({ label: t("dry_run.kind") }, choice("kind", KINDS.map((kind) => [kind, word("event_kind", kind)]))),
      field({ label: t("dry_run.chat") }, choice("chat_type", CHATS.map((chat) => [chat, word("chats", chat)]))),
      field({ label: t("dry_run.state"), hint: t("dry_run.state_hint") }, h("input", { name: "user_state", autocomplete: "off" }))),
    field({ label: t("dry_run.text"), hint: t("dry_run.text_hint") }, h("input", { name: "text", autocomplete: "off", dir: "auto" })),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "stored", checked: true }), t("dry_run.stored")),
    h("details", {}, h("summary", {}, t("dry_run.more")),
      field({ label: t("dry_run.json"), hint: t("dry_run.json_hint") }, h("textarea", { name: "more", class: "mono", spellcheck: "false" }))),
    h("div", { class: "actions" }, h("button", { class: "primary" }, t("dry_run.try"))));
  return [form, result];
}

const choice = (name, options) => h("select", { name }, options.map(([value, text]) => h("option", { value }, text)));

const textField = (kind) => (kind === "callback" ? "callback_data" : "event_text");

/** Puts the event of a run into the form: what has a field there, and the rest as JSON. */
async function take(form, id, signal) {
  if (!id) return;
  const { event } = await api.get(`/v1/runs/${encodeURIComponent(id)}`, {}, { signal });
  const kind = event.kind || "text", { [textField(kind)]: text, ...rest } = event;
  for (const name of TYPED) {
    form.elements[name].value = rest[name] ?? (name === "kind" ? "text" : name === "chat_type" ? "private" : "");
    delete rest[name];
  }
  form.elements.text.value = text ?? "";
  form.elements.more.value = JSON.stringify(rest, null, 2);
}

function eventOf(form) {
  const { text, more, run, stored, ...typed } = values(form);
  const known = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ""));
  if (/^\d{1,15}$/.test(known.user_id)) known.user_id = Number(known.user_id);
  return { ...restOf(more), ...known, ...(text && { [textField(typed.kind)]: text }) };
}

function restOf(more) {
  try {
    return more ? JSON.parse(more) : {};
  } catch {
    throw new ApiError({ status: 400, code: "", title: "", errors: [{ path: "more", code: "JSON", message: t("dry_run.not_json") }] });
  }
}

async function play(form, set, result, signal) {
  const event = eventOf(form);
  const found = await api.post("/v1/scenarios:dry-run", { event, stored: form.elements.stored.checked, fail: [...set.fail], unknown: [...set.unknown] }, { signal });
  const names = Object.keys(found.started);
  const drawn = names.length && await api.get(`/v1/scenarios/${encodeURIComponent(names[0])}`, { version: found.version }, { signal }).catch(() => null);
  const again = (node, outcome) => {
    set.fail.delete(node);
    set.unknown.delete(node);
    set[outcome === "failed" ? "fail" : "unknown"]?.[outcome === "completed" ? "delete" : "add"](node);
    return play(form, set, result, signal);
  };
  paint(result, ...shown(found, event, drawn, set, again));
}

function shown(found, event, drawn, set, again) {
  const focus = (id) => { const card = document.getElementById(`step ${id}`); card?.scrollIntoView({ block: "nearest" }); card?.focus(); };
  return [
    h("h2", {}, t("dry_run.result")),
    translated(found, "warnings").map((text) => notice("warn", text)),
    Object.entries(found.started).map(([name, place]) => h("p", {}, t("dry_run.starts", { name }), " ", h("span", { class: "quiet" }, place || t("dry_run.by_button")))),
    drawn && graph(drawn, { label: t("scenarios.graph", { name: drawn.name }), states: statesOf(found.actions), choose: focus }),
    h("ol", { class: "steps" }, found.actions.map((one) => step(one, event, set, again))),
  ];
}

function step(one, event, set, again) {
  const now = set.fail.has(one.node) ? "failed" : set.unknown.has(one.node) ? "unknown" : "completed";
  return h("li", { class: "card", id: `step ${one.node}`, tabindex: -1, key: `${one.n} ${one.node}` },
    h("h3", {}, t("runs.step", { n: one.n, type: one.type }), " ", tag(COLOURS[one.outcome] || "", word("step_state", one.outcome))),
    h("p", {}, said(one.why, { [one.error]: translated(one, "error") })),
    one.shown && shownIn(event.channel, one.shown),
    one.send?.attachment && h("p", { class: "quiet small" }, t("dry_run.files", { files: JSON.stringify(one.send.attachment) })),
    one.outcome !== "drop" && one.outcome !== "hold" && h("label", { class: "check" }, t("dry_run.outcome"),
      h("select", { onchange: (changed) => again(one.node, changed.target.value) }, OUTCOMES.map((outcome) => h("option", { value: outcome, selected: outcome === now }, outcome === "completed" ? t("dry_run.usual") : word("step_state", outcome))))),
    h("p", { class: "quiet small" }, one.scenario),
    Object.keys(one.results).length > 0 && h("details", {}, h("summary", {}, t("runs.results")), h("pre", { tabindex: 0, "aria-label": t("runs.results") }, JSON.stringify(one.results, null, 2))));
}
