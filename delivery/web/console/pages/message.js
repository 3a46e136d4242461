/** One message: who was not reached comes first, each outcome is live. */

import { h, paint } from "../lib/dom.js";
import { moment, t, word } from "../lib/words.js";
import { api, randomKey } from "../lib/api.js";
import { empty, explain, failed, loading, notice, statusTag, tag, toast } from "../lib/states.js";
import { confirm } from "../lib/dialog.js";
import { sentence, kindOf } from "../lib/verdict.js";

const SHOWN = 1000;
const PAUSE = 500;
const REACHED = new Set(["sent", "delivered", "read"]);
const OPEN = new Set(["queued", "sending"]);

export default {
  title: "page.message",
  right: "read",
  async render(root, [id], context) {
    if (!id) return paint(root, h("h1", {}, t("page.message")), empty({ title: t("messages.choose"), action: h("a", { href: "#/messages" }, t("page.messages")) }));
    const path = `/v1/deliveries/${encodeURIComponent(id)}`;
    paint(root, h("h1", {}, t("page.message")), loading());
    const show = async () => draw(root, await api.get(path, { limit: SHOWN }, { signal: context.signal }), path, context, show);
    try {
      await show();
    } catch (error) {
      return paint(root, h("h1", {}, t("page.message")), failed(error, error.status === 404 ? null : show));
    }
    return followChanges(path, show);
  },
};

/** Reads again after a change, at most twice a second. Returns a function that ends it. */
function followChanges(path, show) {
  const stream = new EventSource(`${path}/events`);
  let timer = 0;
  const again = () => { timer ||= setTimeout(() => { timer = 0; show().catch(() => {}); }, PAUSE); };
  for (const name of ["outcome", "state", "message"]) stream.addEventListener(name, again);
  stream.addEventListener("finished", () => { again(); stream.close(); });
  return () => { stream.close(); clearTimeout(timer); };
}

function draw(root, message, path, { me }, show) {
  const parts = { missed: [], waiting: [], reached: [] };
  for (const one of message.recipients) parts[partOf(one)].push(one);
  paint(root,
    h("h1", {}, t("page.message")),
    notice(kindOf(message) || "info", h("strong", {}, sentence(message))),
    h("div", { class: "panel" }, h("p", { class: "message-text", dir: "auto" }, message.text || t("messages.no_text")),
      h("p", { class: "quiet small" }, facts(message))),
    me.rights.includes("write") && actions(message, path, show),
    Object.entries(parts).map(([name, people]) => people.length > 0 && h("section", { key: name },
      h("h2", {}, t(`message.${name}`, { count: people.length })), h("ul", { class: "people" }, people.map((one) => person(one, name))))),
    message.next && h("p", { class: "quiet" }, t("message.first", { count: message.recipients.length })));
}

const partOf = ({ outcomes }) => {
  const statuses = Object.values(outcomes).map((one) => one.status);
  if (statuses.some((one) => REACHED.has(one))) return "reached";
  return statuses.some((one) => OPEN.has(one)) ? "waiting" : "missed";
};

const facts = (message) => t(message.moved_from ? "message.facts_moved" : "message.facts", {
  state: word("delivery_state", message.state), sender: message.sender.name || String(message.sender.id), time: moment(message.deliver_at),
  from: message.moved_from ? moment(message.moved_from) : "",
});

const SILENT = new Set(["no_contact", "skipped"]);

/** Returns one line: the channels that say something; one mark if none does. */
function person(one, part) {
  const telling = Object.entries(one.outcomes).filter(([, outcome]) => !SILENT.has(outcome.status));
  return h("li", { key: one.id }, h("strong", { dir: "auto" }, one.name || String(one.id)), h("span", { class: "outcomes" },
    telling.length ? telling.map(([channel, outcome]) => h("span", {}, word("channel", channel), " ", statusTag(outcome.status),
      part !== "reached" && outcome.reason && h("span", { class: "quiet small" }, " ", word("reason", outcome.reason))))
      : tag("warn", t("message.no_contact"))));
}

function actions({ state, counts }, path, show) {
  const act = async (work, done) => {
    try {
      await work();
      toast(done);
      await show();
    } catch (error) {
      toast(explain(error), "bad");
    }
  };
  const cancel = async () => {
    if (!await confirm({ title: t("message.cancel_title"), text: t("message.cancel_text"), action: t("message.cancel"), danger: true })) return;
    await act(() => api.del(path), t("message.cancelled"));
  };
  const retry = () => act(() => api.post(`${path}/retry`, undefined, { idempotencyKey: randomKey() }), t("message.retried"));
  return h("div", { class: "actions" },
    (state === "scheduled" || state === "released") && h("button", { class: "danger", onclick: cancel }, t("message.cancel")),
    state === "finished" && (counts.failed > 0 || counts.unknown > 0) && h("button", { onclick: retry }, t("message.retry")),
    h("a", { class: "button", href: `${path}/recipients.csv`, download: true }, t("message.csv")));
}
