/** Costs: what was sent and is paid in each month by channel, and in one month by sender; as a file, too. */

import { h, paint } from "../lib/dom.js";
import { currentLanguage, monthName, number, sum, t, word } from "../lib/words.js";
import { address, api } from "../lib/api.js";
import { table } from "../lib/table.js";
import { senderOf } from "./messages.js";

const cutMonth = (row) => monthName(row.month);

export default {
  title: "page.costs",
  right: "read",
  render(root, parameters, context) {
    const months = h("div"), senders = h("div"), chosen = context.query.month, { me } = context, isOwn = me.kind === "person" && me.role !== "admin";
    const file = { href: address("/v1/costs.csv", { excel: "", language: currentLanguage(), from: chosen, until: chosen }), download: "" };
    paint(root, h("h1", {}, chosen ? t("costs.of_month", { month: monthName(chosen) }) : t("page.costs")), h("p", { class: "quiet" }, isOwn && [t("costs.own"), " "], t("costs.about")),
      h("div", { class: "actions" }, chosen && h("a", { class: "button", href: "#/costs" }, t("costs.all_months")), h("a", { class: "button", ...file }, t("costs.file"))), months, senders);
    const load = ({ signal, cursor }) => api.get("/v1/costs", { from: chosen, until: chosen, cursor, limit: 100 }, { signal });
    table(months, {
      label: t("page.costs"), id: (row) => `${row.month} ${row.channel}`, href: (row) => (chosen ? null : `#/costs?month=${row.month}`),
      columns: [
        !chosen && { title: t("costs.month"), width: "2fr", name: cutMonth, cell: cutMonth },
        { title: t("costs.channel"), width: "2fr", cell: (row) => word("channel", row.channel) },
        ...counts(),
      ].filter(Boolean),
      load: async (query) => ({ rows: (await load(query)).totals, next: null }),
      whenEmpty: { title: t("costs.none"), text: t("costs.none_text") },
    });
    if (!chosen || isOwn) return;
    const list = h("div");
    paint(senders, h("h2", {}, t("costs.senders")), list);
    table(list, {
      label: t("costs.senders"), id: (row) => `${row.channel} ${row.sender}`,
      columns: [
        { title: t("costs.sender"), width: "2fr", cell: (row) => h("span", { class: "cut", dir: "auto" }, senderOf({ id: row.sender, name: row.name })) },
        { title: t("costs.channel"), width: "2fr", cell: (row) => word("channel", row.channel) },
        ...counts(),
      ],
      load: async (query) => { const { costs, next } = await load(query); return { rows: costs, next }; },
      whenEmpty: { title: t("costs.none"), text: t("costs.none_text") },
    });
  },
};

const counts = () => [
  { title: t("costs.messages"), width: "9rem", class: "number", cell: (row) => number(row.messages) },
  { title: t("costs.parts"), width: "9rem", class: "number", cell: (row) => (row.parts ? number(row.parts) : "–") },
  { title: t("costs.sum"), width: "2fr", class: "number", cell: paid },
];

/** Returns what is paid; where no price was set, that it is not known. */
const paid = ({ parts, sums, unpriced }) => {
  if (!parts) return t("costs.free");
  return [...sums.map((one) => sum(one)), unpriced && `${t("costs.unpriced")}: ${number(unpriced)}`].filter(Boolean).join(", ");
};
