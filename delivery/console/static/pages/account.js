/** Who is signed in, what this person may do, and signing out. */

import { h, paint } from "../lib/dom.js";
import { currentZone, t, word } from "../lib/words.js";
import { explain, fact, toast } from "../lib/page.js";
import { confirm } from "../lib/dialog.js";

export default {
  title: "page.account",
  right: null,
  render(root, parameters, { me, signOut }) {
    const leave = (everywhere) => signOut(everywhere).catch((error) => toast(explain(error), "bad"));
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
        h("button", { class: "danger", onclick: leaveEverywhere }, t("account.everywhere"))));
  },
};
