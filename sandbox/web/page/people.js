// The tab of people: choose or create a person, and see the person's chats.

import { at, button, element, filled, Refusal, request, setConnected } from "./dom.js";
import { follow, renderChats, stopFollowing } from "./chats.js";
import { explain, say } from "./words.js";

let people = [];
let chosen = 0;

export const rerenderPeople = () => { renderPeople(); renderChats(); };
export const leavePeople = stopFollowing;

/** Shows this person; 0: the one shown last, at first the first one. */
export async function showPeople(number) {
  try {
    people = (await request("GET", "people")).people;
  } catch {
    setConnected(false);
    setTimeout(() => at("tab-people").hidden || showPeople(number), 1000);
    return;
  }
  setConnected(true);
  const person = people.find((one) => one.number === (number || chosen)) || people[0];
  chosen = person ? person.number : 0;
  renderPeople();
  fillIn();
  follow(person, () => showPeople(0));
}

function renderPeople() {
  const links = people.map((person) => {
    const link = element("a", { href: `#person-${person.number}` }, person.name);
    if (person.number === chosen) link.setAttribute("aria-current", "true");
    return link;
  });
  const remove = button(say("remove"), () => change(() => request("DELETE", `people/${chosen}`)));
  remove.id = "remove";
  const focused = [...at("persons").children].indexOf(document.activeElement);
  at("persons").replaceChildren(...links, ...(chosen ? [remove] : []));
  at("persons").children[focused]?.focus();
}

/** Suggests addresses that are not used. */
function fillIn() {
  const number = Math.max(0, ...people.map((one) => one.number)) + 1;
  const fields = at("person").elements;
  const suggested = {
    telegram: 100000 + number, vk: 200000 + number, max: 300000 + number, sms: `+${79990100000 + number}`, email: `person${number}@sandbox.example`,
  };
  for (const [name, value] of Object.entries(suggested)) fields[name].value = value;
}

/** Creates or removes a person, or reports why not. */
async function change(work) {
  const problem = at("person").querySelector(".problem");
  problem.textContent = "";
  try {
    const person = await work();
    at("person").elements.name.value = "";
    location.hash = person ? `#person-${person.number}` : "#people";
    await showPeople(person ? person.number : 0);
    at("creation").open = false;
  } catch (failure) {
    problem.textContent = explain(failure);
  }
}

at("person").onsubmit = (event) => {
  event.preventDefault();
  change(() => request("POST", "people", filled(at("person"))));
};

/** Shows the person with this address, who is created if there is none. */
export async function openPerson(channel, address) {
  const field = channel === "telegram-bot" ? "telegram" : channel;
  people = (await request("GET", "people")).people;
  let person = people.find((one) => one[field] === address);
  try {
    person ||= await request("POST", "people", { name: address, [field]: address });
  } catch (failure) {
    if (!(failure instanceof Refusal)) throw failure;
    return;  // a group: it has no person
  }
  location.hash = `#person-${person.number}`;
}
