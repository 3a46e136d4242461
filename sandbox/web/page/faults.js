// The tab of faults: the rules in force and a form for new ones, the magic recipients, counters and settings.

import { at, element, filled, pause, request, row, setConnected } from "./dom.js";
import { explain } from "./words.js";

const form = at("rule"), fields = form.elements;
const problem = form.querySelector(".problem");
let showing = 0;  // incremented when the tab is shown or left; older loops stop
let kinds = null;

export const leaveFaults = () => { showing += 1; };

/** Shows rules and counters, every second, until the tab is left. */
export async function showFaults() {
  const mine = ++showing;
  while (mine === showing) {
    try {
      await showOnce();
      setConnected(true);
    } catch {
      setConnected(false);
    }
    await pause(1000);
  }
}

async function showOnce() {
  if (!kinds) await showKinds();
  const [state, { rules }] = await Promise.all([request("GET", "state.json"), request("GET", "rules")]);
  at("rules").replaceChildren(...rules.map((one) => row(one.number, one.channel, one.address, one.method, one.fault, one.value, one.times ?? "∞")));
  at("counters").replaceChildren(...counterRows(state.counters));
  at("settings").textContent = Object.entries(state.environment).map(([name, value]) => `${name}=${value}`).join("\n");
}

function counterRows(counters) {
  return Object.entries(counters).flatMap(([channel, counts]) =>
    Object.entries(counts).map(([name, count]) => row(channel, name, count)));
}

async function showKinds() {
  const magic = await request("GET", "magic.json");
  kinds = await request("GET", "faults.json");
  fields.channel.replaceChildren(...Object.keys(kinds).map((name) => element("option", {}, name)));
  showFaultNames();
  at("magic").replaceChildren(...Object.entries(magic).flatMap(([channel, table]) =>
    table.map((one) => row(channel, one.address, one.name, one.value, one.means))));
}

function showFaultNames() {
  fields.fault.replaceChildren(...Object.keys(kinds[fields.channel.value]).map((name) => element("option", {}, name)));
  showMeaning();
}

function showMeaning() {
  const kind = kinds[fields.channel.value][fields.fault.value];
  at("meaning").textContent = kind.meaning;
  fields.value.disabled = kind.value === null;
  fields.value.placeholder = kind.value || "";
}

async function change(work) {
  problem.textContent = "";
  try {
    await work();
    await showOnce();
  } catch (failure) {
    problem.textContent = explain(failure);
  }
}

fields.channel.onchange = showFaultNames;
fields.fault.onchange = showMeaning;
form.onsubmit = (event) => { event.preventDefault(); change(() => request("POST", "rules", filled(form, ["value", "times"]))); };
at("clear").onclick = () => change(() => request("DELETE", "rules"));
