/** The messages that were sent, newest first, with a plain verdict each. */

import { h, paint } from "../lib/dom.js";
import { moment, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { tag } from "../lib/states.js";
import { table } from "../lib/table.js";
import { follow } from "../lib/live.js";
import { kindOf, sentence } from "../lib/verdict.js";

const STATES = ["scheduled", "released", "finished", "cancelled", "expired"];

export default {
  title: "page.messages",
  right: "read",
  render(root, parameters, context) {
    const place = h("div");
    paint(root, h("h1", {}, t("page.messages")), place);
    const list = table(place, {
      label: t("page.messages"), context, id: (row) => row.id, href: (row) => `#/message/${encodeURIComponent(row.id)}`,
      filters: [{ name: "state", label: t("messages.state"), options: [["", t("messages.any")], ...STATES.map((one) => [one, word("delivery_state", one)])] }],
      columns: [
        { title: t("messages.text"), width: "3fr", cell: (row) => h("span", { class: "clamp", dir: "auto" }, row.text || t("messages.no_text")) },
        { title: t("messages.verdict"), width: "3fr", cell: (row) => tag(kindOf(row), sentence(row)) },
        { title: t("messages.sender"), width: "1fr", cell: (row) => row.sender.name || String(row.sender.id) },
        { title: t("messages.when"), width: "9rem", cell: (row) => moment(row.deliver_at) },
      ],
      load: async ({ cursor, signal, ...filters }) => {
        const page = await api.get("/v1/deliveries", { ...filters, cursor, limit: 50 }, { signal });
        return { rows: page.deliveries, next: page.next };
      },
      whenEmpty: { title: t("messages.none"), action: h("a", { class: "button primary", href: "#/write" }, t("page.write")) },
    });
    follow(["deliveries"], () => list.update(), context.signal);
  },
};
