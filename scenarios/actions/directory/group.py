"""Puts the person of the event into a group of the directory, or takes it out (C-113)."""

from typing import Annotated

from core.errors import Conflict, Invalid
from core.model.history_key import Id
from core.model.people import User, id_text
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Text
from scenarios.sending.person import known_person, refused
from scenarios.words import sentence


class GroupAttributes(Attributes, frozen=True):
    add: Annotated[Text, Own("The group into which the person is put. The directory learns to know a stranger.")] = ""
    remove: Annotated[Text, Own("The group out of which the person is taken.")] = ""

    def check(self) -> None:
        """Raises Invalid FIELD_INVALID."""
        if self.add and self.add == self.remove:
            raise Invalid("FIELD_INVALID", sentence("group_add_and_remove"), "remove")


async def execute(context: Context, written: GroupAttributes) -> Ending:
    """Change the memberships; a repeat changes nothing. Raises Refused."""
    written.check()
    context.require("manage")
    services, user = context.services, await known_person(context)
    groups = services.core.directory.groups
    if written.remove:
        await groups.require(services.tenant, [written.remove])
        if user:
            await groups.remove_member(services.tenant, written.remove, user.id)
    if written.add:
        await groups.require(services.tenant, [written.add])
        await groups.add_member(services.tenant, written.add, user.id if user else await _new_person(context))
    return completed({"directory_id": id_text(user.id) if user else ""})


async def _new_person(context: Context) -> Id:
    """Store the person of the event in the directory; return its id. Raises Refused."""
    names = (context.event.get(name) for name in ("first_name", "last_name"))
    name = " ".join(str(one) for one in names if one) or None
    user = User(f"{context.channel}-{context.person}", name, contacts={context.channel: [context.person]})
    try:
        await context.services.core.directory.users.create(context.services.tenant, user)
    except Conflict as known:
        if known.code != "USER_EXISTS":  # by an execution before a crash
            raise
    return user.id


def rehearse(step: RehearsedStep, written: GroupAttributes) -> Ending:
    written.check()
    return completed(step.echo(["directory_id"]))


ACTION = ActionType(
    name="group",
    help="Puts the person who writes into a group of the directory, or takes it out of one.",
    attributes=GroupAttributes,
    placeholder=True,
    one_of=("add", "remove"),
    returns={
        "directory_id": "the person's id in the directory",
        "code": "why it failed: `GROUP_NOT_FOUND`, `LIMIT_REACHED`",
        "wait": "0",
    },
    execute=execute,
    rehearse=rehearse,
    failure=refused,
)
