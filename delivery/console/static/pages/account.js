/** Who is signed in, what this person may do, the keys of a person's own programs, and signing out. */

import { field, h, paint } from "../lib/dom.js";
import { api } from "../lib/api.js";
import { currentZone, t, word } from "../lib/words.js";
import { fact, toastError } from "../lib/page.js";
import { confirm } from "../lib/dialog.js";
import { create, personalKeys } from "./keys.js";

const KEYS = "/v1/me/keys";

export default {
  title: "page.account",
  right: null,
  render(root, parameters, context) {
    const { me, signOut } = context;
    const keys = h("section");
    const leave = (everywhere) => signOut(everywhere).catch(toastError);
    const leaveEverywhere = async () => {
      if (await confirm({ title: t("account.everywhere"), text: t("account.everywhere_text"), action: t("account.everywhere"), danger: true })) await leave(true);
    };
    paint(root,
      h("h1", {}, t("page.account")),
      h("dl", { class: "facts" },
        fact("account.name", me.name || "–"),
        fact("account.rights", me.rights.length ? me.rights.map((right) => word("right", right)).join(", ") : t("account.no_rights")),
        fact("account.zone", currentZone())),
      h("div", { class: "actions" },
        h("button", { onclick: () => leave(false) }, t("account.sign_out")),
        h("button", { class: "danger", onclick: leaveEverywhere }, t("account.everywhere"))),
      me.kind === "person" && keys);
    if (me.kind === "person") showKeys(keys, context);
  },
};

function showKeys(root, context) {
  const place = h("div");
  const days = () => field({ label: t("account.key_days") }, h("input", { name: "days", type: "number", min: 1, max: 366, value: 90, required: true }));
  const make = async () => { if (await create(KEYS, [...context.me.scopes, "calendar"], days())) list.reload(); };
  paint(root, h("h2", {}, t("account.keys")), h("p", {}, t("account.keys_text")), h("div", { class: "actions" }, h("button", { onclick: make }, t("keys.create"))), place);
  const list = personalKeys(place, KEYS, context);
}
