/** A thread: what a person and an inbox have written to each other, and the answer. */

import { h, newId } from "../lib/dom.js";
import { moment, t, word } from "../lib/words.js";
import { api, randomKey } from "../lib/api.js";
import { confirm } from "../lib/dialog.js";
import { submits, toast, withStates } from "../lib/page.js";
import { nameOf } from "./inbox.js";

const PAUSE = 5000;

export default {
  title: "page.inbox",
  right: ["read", "person"],
  render(root, [id], context) {
    const path = `/v1/threads/${encodeURIComponent(id)}`, field = newId("answer");
    let key = randomKey();
    const load = async () => {
      const found = await api.get(path, { limit: 200 }, { signal: context.signal });
      if (found.thread.unread) await api.post(`${path}:read`);
      return found;
    };
    const post = async (text, more) => {
      await api.post(`${path}/messages`, { text, ...more }, { idempotencyKey: key });
      key = randomKey();
      return true;
    };
    const answers = (text) => post(text).catch(async (error) => {
      if (error.code !== "ADDRESS_IN_TEXT") throw error;
      key = randomKey();
      const isWanted = await confirm({ title: t("inbox.address"), text: t("inbox.address_text"), action: t("inbox.address_send") });
      return isWanted && post(text, { with_addresses: true });
    });
    const send = submits(async (form) => {
      const text = form.elements.text.value;
      if (!text.trim()) return form.elements.text.focus();
      if (!await answers(text)) return;
      form.elements.text.value = "";
      toast(t("inbox.sent"));
      await show();
    });
    const show = withStates(root, load, ({ thread, messages, next }) => {
      context.title(nameOf(thread));
      return [
        h("h1", {}, nameOf(thread)),
        h("p", { class: "quiet" }, t("inbox.way", { channel: word("channel", thread.channel) }), " ",
          thread.delivery && h("a", { href: `#/message/${encodeURIComponent(thread.delivery)}` }, t("inbox.about"))),
        next && h("p", { class: "quiet" }, t("inbox.older")),
        h("ol", { class: "thread", "aria-live": "polite" }, [...messages].reverse().map((one) => bubble(one, thread))),
        h("form", { class: "thread-answer", onsubmit: send }, h("label", { for: field }, t("inbox.answer")),
          h("textarea", { id: field, name: "text", rows: 3, maxlength: 4096, dir: "auto" }),
          h("div", { class: "actions" }, h("button", { class: "primary" }, t("inbox.send")), h("a", { class: "button", href: "#/inbox" }, t("inbox.back")))),
      ];
    });
    const timer = setInterval(() => document.visibilityState === "visible" && show(), PAUSE);
    return () => clearInterval(timer);
  },
};

const bubble = (one, thread) => h("li", { key: one.number, class: one.side },
  h("p", { class: "quiet" }, one.side === "person" ? nameOf(thread) : t("inbox.answered"), ` · ${moment(one.at)}`),
  one.text && h("p", { class: "said", dir: "auto" }, one.text),
  one.files > 0 && h("p", { class: "quiet" }, t("inbox.files", { count: one.files })));
