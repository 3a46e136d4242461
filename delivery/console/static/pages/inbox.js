/** Replies of people to messages: the threads of an inbox, the newest first. */

import { h, paint } from "../lib/dom.js";
import { moment, t, word } from "../lib/words.js";
import { api } from "../lib/api.js";
import { follow } from "../lib/live.js";
import { countUnread, tag } from "../lib/page.js";
import { table } from "../lib/table.js";

export default {
  title: "page.inbox",
  right: ["read", "person"],
  render(root, parameters, context) {
    const place = h("div"), choice = h("div");
    paint(root, h("h1", {}, t("page.inbox")), choice, place);
    const list = table(place, {
      label: t("page.inbox"), context, id: (row) => row.id, href: (row) => `#/thread/${row.id}`,
      filters: [{ name: "q", label: t("inbox.search"), type: "search" }, { name: "unread", label: t("inbox.shown"), options: [["", t("inbox.all")], ["true", t("inbox.unread_only")]] }],
      columns: [
        { title: t("inbox.person"), width: "1.5fr", name: nameOf, cell: (row) => [h("strong", {}, nameOf(row)), row.unread > 0 && [" ", tag("info", t("inbox.unread", { count: row.unread }))]] },
        { title: t("inbox.text"), width: "3fr", cell: (row) => [answering(row, context.me), h("span", { class: "cut", dir: "auto" }, lineOf(row))] },
        { title: t("inbox.channel"), width: "9rem", cell: (row) => word("channel", row.channel) },
        { title: t("inbox.when"), width: "9rem", cell: (row) => moment(row.last_at) },
      ],
      load: async ({ signal, ...asked }) => {
        let page;
        do { // a search of many threads may find none in the first of them
          page = await api.get("/v1/threads", { inbox: context.query.inbox, ...asked, limit: 50 }, { signal });
          asked.cursor = page.next;
        } while (page.next && !page.threads.length);
        countUnread(page.inboxes);
        paint(choice, page.inboxes.length > 1 && chooser(page.inboxes, context, list));
        return { rows: page.threads, next: page.next };
      },
      whenEmpty: { title: t("inbox.none") },
    });
    follow(["reply"], () => list.update(), context.signal);
  },
};

export const nameOf = ({ person }) => person.name || t("inbox.stranger");

/** The name of another reader of an office who is answering at this moment. */
export const colleagueOf = ({ answering }, me) => answering && String(answering.id) !== String(me.id) ? answering.name : "";

function answering(row, me) {
  const name = colleagueOf(row, me);
  return name && [tag("info", t("inbox.answering", { name })), " "];
}

function lineOf({ newest }) {
  const text = newest && (newest.text || newest.attachments.map((one) => one.name).join(", ") || t("inbox.files", { count: newest.files }));
  return newest?.side === "staff" ? `${t("inbox.answered")}: ${text}` : text;
}

const chooser = (inboxes, context, list) => h("label", { class: "field" }, t("inbox.whose"), h("select", {
  onchange: (event) => { context.setQuery({ inbox: event.target.value }); list.reload(); },
}, inboxes.map(({ id, title, unread }) => h("option", { value: id, selected: id === (context.query.inbox || inboxes[0].id) }, unread ? `${title} (${unread})` : title))));
