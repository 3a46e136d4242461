/** Writing a message: to whom, what, when; checked before it is sent. A draft survives a reload. */

import { field, h, paint, values } from "../lib/dom.js";
import { moment, number, t, word } from "../lib/words.js";
import { api, randomKey } from "../lib/api.js";
import { failed, loading, notice, submits } from "../lib/states.js";
import { open } from "../lib/dialog.js";

const DRAFT = "ada.draft";
const GROUPS_SHOWN = 1000;

export default {
  title: "page.write",
  right: "write",
  async render(root, parameters, context) {
    paint(root, h("h1", {}, t("page.write")), loading());
    try {
      paint(root, h("h1", {}, t("page.write")), form(await groupsOf(context), context));
    } catch (error) {
      if (error.name !== "AbortError") paint(root, h("h1", {}, t("page.write")), failed(error, () => context.go("write")));
    }
  },
};

/** Returns the groups that may be written to: {kind, id, title}. */
async function groupsOf({ me, signal }) {
  if (!me.owns_all || !me.rights.includes("people")) {
    return [...me.groups.map((one) => ({ kind: "group", ...one })), ...me.supergroups.map((one) => ({ kind: "supergroup", ...one }))];
  }
  const [{ groups }, { supergroups }] = await Promise.all(["groups", "supergroups"].map((name) => api.get(`/v1/${name}`, { limit: GROUPS_SHOWN }, { signal })));
  return [...groups.map((one) => ({ kind: "group", id: one.id, title: one.title })), ...supergroups.map((one) => ({ kind: "supergroup", id: one.id, title: one.title }))];
}

function form(groups, context) {
  const draft = JSON.parse(localStorage.getItem(DRAFT) || "{}");
  const keep = (event) => localStorage.setItem(DRAFT, JSON.stringify(read(event.currentTarget)));
  const name = (group) => `${group.kind}:${group.id}`;
  return h("form", { class: "write", oninput: keep, onsubmit: submits((one) => check(one, groups, context)) },
    h("fieldset", { class: "panel" }, h("legend", {}, t("write.groups")),
      groups.length ? groups.map((group) => h("label", { class: "check" },
        h("input", { type: "checkbox", name: "group", value: name(group), checked: draft.chosen?.includes(name(group)) }), group.title || String(group.id)))
        : h("p", { class: "quiet" }, t("write.no_groups"))),
    field({ label: t("write.people"), hint: t("write.people_hint") }, h("textarea", { name: "people", class: "short", value: draft.people || "" })),
    field({ label: t("write.text") }, h("textarea", { name: "text", maxlength: 4096, required: true, dir: "auto", value: draft.text || "" })),
    field({ label: t("write.when"), hint: t("write.when_hint") }, h("input", { type: "datetime-local", name: "deliver_at", value: draft.deliver_at || "" })),
    h("div", { class: "actions" }, h("button", { class: "primary" }, t("write.check"))));
}

const read = (one) => ({
  ...values(one), chosen: [...one.querySelectorAll("[name=group]:checked")].map((box) => box.value),
});

function bodyOf(one, groups, { me }) {
  const { chosen, people, text, deliver_at } = read(one);
  const addressed = groups.filter((group) => chosen.includes(`${group.kind}:${group.id}`)).map((group) => ({ [group.kind]: group.id }));
  const named = people.split("\n").map((line) => line.trim()).filter(Boolean);
  return {
    sender: { id: me.id, name: me.name }, text, origin: "console", recipients: [...addressed, ...named],
    ...(deliver_at ? { deliver_at: new Date(deliver_at).toISOString() } : {}),
  };
}

/** Shows what would happen, and sends after a press. The same check sends once, however often the button is pressed. */
async function check(one, groups, context) {
  const body = bodyOf(one, groups, context);
  const preview = await api.post("/v1/deliveries/preview", body);
  const idempotencyKey = randomKey();
  const accepted = await open(t("write.check_title"), (close) => h("form", { onsubmit: submits(async () => {
    close(await api.post("/v1/deliveries", body, { idempotencyKey }));
  }) },
  summary(preview),
  h("div", { class: "actions" }, h("button", { class: "primary" }, t("write.send", { count: reachable(preview) })),
    h("button", { type: "button", onclick: () => close() }, t("action.back")))));
  if (!accepted) return;
  localStorage.removeItem(DRAFT);
  context.go(`message/${encodeURIComponent(accepted.id)}`);
}

const reachable = ({ people, no_contact, opted_out }) => people - no_contact - (opted_out || 0);

function summary(preview) {
  const channels = Object.entries(preview.channels).filter(([, one]) => one.people > 0);
  return [
    h("p", {}, h("strong", {}, t("write.people_count", { count: preview.people }))),
    h("ul", {}, channels.map(([channel, one]) => h("li", {}, t("write.channel", { channel: word("channel", channel), people: number(one.people) })))),
    preview.no_contact > 0 && notice("warn", t("write.no_contact", { count: preview.no_contact })),
    preview.opted_out > 0 && notice("warn", t("write.opted_out", { count: preview.opted_out })),
    preview.duplicates > 0 && h("p", { class: "quiet" }, t("write.duplicates", { count: preview.duplicates })),
    preview.moved_from && notice("warn", t("write.moved", { time: moment(preview.deliver_at) })),
    preview.quota && h("p", { class: "quiet" }, t("write.quota", { left: preview.quota.left })),
  ];
}
