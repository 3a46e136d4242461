// The tabs. The part of the address after # names the tab, or a person: #people, #person-2, #all, #faults.

import { at } from "./dom.js";
import { leavePeople, rerenderPeople, showPeople } from "./people.js";
import { leaveMessages, rerenderMessages, showMessages } from "./messages.js";
import { leaveFaults, showFaults } from "./faults.js";
import { startWords } from "./words.js";

const TABS = {
  people: { show: showPeople, leave: leavePeople },
  all: { show: showMessages, leave: leaveMessages },
  faults: { show: showFaults, leave: leaveFaults },
};
let shown = "";

function navigate() {
  const person = /^#person-(\d+)$/.exec(location.hash);
  const name = location.hash.slice(1) in TABS ? location.hash.slice(1) : "people";
  if (shown) TABS[shown].leave();
  shown = name;
  for (const tab of Object.keys(TABS)) at(`tab-${tab}`).hidden = tab !== name;
  for (const link of at("tabs").children) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  TABS[name].show(person ? Number(person[1]) : 0);
}

startWords(() => { rerenderPeople(); rerenderMessages(); });
window.onhashchange = navigate;
navigate();
