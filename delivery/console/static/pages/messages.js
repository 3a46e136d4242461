/** Messages that were sent: newest first, each with a plain verdict, live. */

import { h, paint } from "../lib/dom.js";
import { has, moment, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { BY_ADA, explainOne, plainOf, tag, textOf, toast, toastError, verdict } from "../lib/page.js";
import { confirm } from "../lib/dialog.js";
import { table } from "../lib/table.js";
import { follow } from "../lib/live.js";
import { draftAgain, draftFollowUp, inZone } from "../lib/draft.js";

const STATES = ["scheduled", "released", "finished", "cancelled", "expired"];

export default {
  title: "page.messages",
  right: "read",
  async render(root, parameters, context) {
    if (context.query.message && await opened(context)) return;
    const place = h("div"), repeated = h("div");
    paint(root, h("h1", {}, t("page.messages")),
      context.me.rights.includes("write") && h("div", { class: "actions" }, h("a", { class: "button primary", href: "#/write" }, t("messages.new"))), repeated, place);
    drawSeries(repeated, context);
    const seesAll = context.me.kind === "key" || context.me.role === "admin";
    const list = table(place, {
      label: t("page.messages"), context, id: (row) => row.id, href: (row) => `#/message/${row.id}`,
      filters: [
        { name: "text", label: t(context.me.role === "admin" ? "messages.own_text" : "messages.text"), type: "search" },
        { name: "state", label: t("messages.state"), options: [["", t("messages.any")], ...STATES.map((one) => [one, word("delivery_state", one)])] },
        seesAll && { name: "sender", label: t("messages.sender"), type: "search" },
        { name: "tag", label: t("messages.tag"), type: "search" },
        { name: "since", label: t("messages.since"), type: "date" },
      ].filter(Boolean),
      columns: [
        { title: t("messages.text"), width: "3fr", name: textOf, cell: (row) => [row.kind === "trial" && [tag("info", t("messages.trial")), " "], BY_ADA.includes(row.kind) && [tag("info", t("messages.by_ada")), " "], h("span", { class: "cut", dir: "auto" }, textOf(row))] },
        { title: t("messages.sender"), width: "2fr", cell: (row) => senderOf(row.sender) },
        { title: t("messages.when"), width: "9.5rem", cell: (row) => moment(row.deliver_at) },
        { title: t("messages.verdict"), width: "11.5rem", cell: verdict },
        { title: t("messages.repeat"), width: "7.5rem", cell: (row) => !row.text_hidden && !["reply", ...BY_ADA].includes(row.kind) && h("button", { class: "plain", onclick: () => writeAgain(row, context) }, t("messages.repeat")) },
      ],
      load: async ({ cursor, signal, since, ...filters }) => {
        const page = await api.get("/v1/deliveries", { ...filters, since: since && inZone(`${since}T00:00`, context.me.timezone), cursor, limit: 50 }, { signal });
        return { rows: page.deliveries, next: page.next };
      },
      whenEmpty: { title: t(seesAll ? "messages.none" : "messages.none_own"), text: t("messages.none_text"), action: h("a", { class: "button primary", href: "#/write" }, t("messages.new")) },
    });
    follow(["deliveries"], () => list.update(), context.signal);
  },
};

/** Goes to the delivery of the message that the address names: channel:address:reference. Returns whether there is one. */
async function opened({ query: { message }, signal }) {
  const { deliveries } = await api.get("/v1/deliveries", { message, limit: 1 }, { signal });
  if (deliveries.length) location.replace(`#/message/${encodeURIComponent(deliveries[0].id)}`);
  else toast(t("messages.unknown"), "bad");
  return deliveries.length > 0;
}

/** Shows the messages that are sent again and again, and what can be done with them. */
async function drawSeries(place, context) {
  const { series } = context.me.rights.includes("write") ? await api.get("/v1/series", { limit: 1000 }, { signal: context.signal }).catch(() => ({ series: [] })) : { series: [] };
  const after = (work) => work.then(() => drawSeries(place, context), toastError);
  const change = (one, state) => after(api.patch(`/v1/series/${one.id}`, { state }));
  const remove = async (one) => await confirm({ title: t("series.remove_title"), action: t("series.remove"), danger: true }) && after(api.del(`/v1/series/${one.id}`));
  paint(place, series.length > 0 && h("details", { key: "series", class: "panel", open: true }, h("summary", {}, t("series.title", { count: series.length })),
    h("ul", { class: "plain-list" }, series.map((one) => h("li", { key: one.id },
      h("span", { class: "cut", dir: "auto" }, plainOf(one.message) || t("messages.no_text")),
      h("p", { class: "quiet" }, one.when, ". ", one.next.length ? t("series.next", { when: moment(one.next[0]) }) : word("series_state", one.state), ". ", h("a", { href: `#/messages?tag=${encodeURIComponent(one.tag)}` }, t("series.sent", { count: one.sent }))),
      one.problem && h("p", { class: "notice bad" }, t("series.problem", { when: moment(one.problem.at), why: explainOne({ code: one.problem.code, message: one.problem.detail }) })),
      h("div", { class: "actions" },
        one.state === "active" && h("button", { onclick: () => change(one, "stopped") }, t("series.stop")),
        one.state === "stopped" && h("button", { onclick: () => change(one, "active") }, t("series.go_on")),
        h("button", { class: "danger", onclick: () => remove(one) }, t("series.remove"))))))));
}

/** Returns the name of who has sent something; what Ada sends by itself has no person behind it. */
export const senderOf = ({ id, name }) => name || (has(`sender.${id}`) ? t(`sender.${id}`) : String(id));

/** Returns why somebody was not reached, in words: what is not yet due is not being sent. */
export const whyNot = (why, state) => word("why", why === "waiting" && state === "scheduled" ? "scheduled" : why);

/** Opens the page that writes with a message again. */
export async function writeAgain(message, context) {
  try {
    await draftAgain(message, context.signal);
    context.go("write");
  } catch (error) {
    toastError(error);
  }
}

/** Opens the page that writes to those of a message who are `of`: unreached, or unanswered. */
export function writeAfter(message, context, of) {
  draftFollowUp(message, of);
  context.go("write");
}
