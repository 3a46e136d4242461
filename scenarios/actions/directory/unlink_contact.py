"""Unlinks the contact of the event from its person (D-29, C-115)."""

from core.errors import NotFound
from core.model.people import id_text
from scenarios.actions.directory.link_contact import linking_of
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Attributes
from scenarios.sending.person import known_person, refused
from scenarios.stores import step_results
from scenarios.words import sentence


async def execute(context: Context, _: Attributes) -> Ending:
    """Unlink once, however often it is executed. Raises NotFound CONTACT_NOT_LINKED."""
    user = await known_person(context)
    if user is None:
        if await step_results.recall(context) is None:
            raise NotFound("CONTACT_NOT_LINKED", sentence("directory_does_not_know"))
        return completed()
    await step_results.remember(context, id_text(user.id))
    await linking_of(context).unlink(context.services.tenant, context.channel, context.person)
    return completed()


ACTION = ActionType(
    name="unlink_contact",
    help="Unlinks the contact of the person who writes: the person gets no more messages there.",
    placeholder=True,
    returns={"code": "why it failed: `CONTACT_NOT_LINKED`, `IMPORT_RUNNING`", "wait": "0"},
    outside=lambda _: True,
    execute=execute,
    rehearse=lambda step, _: completed(),
    failure=refused,
)
