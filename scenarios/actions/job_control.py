"""The long-running jobs that the person of an event may control (U-19).

A person controls its own jobs as the user, and those of others only with the role `admin`, as an administrator; the
author of a bot cannot allow more. A person's own jobs are those of its id in the directory. A person that the directory
does not know has `CHANNEL:ADDRESS`, for example `telegram-bot:100001`, which is no id of somebody else there.
"""

from dataclasses import dataclass

from core.admission.actions import MAX_REASON, ActionLog, OperatorAction
from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.jobs import Actor, JobId, JobState, StoredJob
from core.jobs.views import Wanted
from core.model.people import id_text
from providers.sign_in import SignIn
from providers.sign_in.sign_in import sign_out as sign_user_out
from scenarios.context import Context
from scenarios.telegram import denial
from scenarios.words import sentence

ADMIN = "admin"

_MOST_PAGES = 20
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Control:
    """The user whose jobs an action controls, and the actor in whose name."""

    user: str
    actor: Actor


async def own_user(context: Context) -> str:
    """Return the user whose jobs are those of the event's person. Raises Invalid FIELD_INVALID if it has none."""
    if not context.person:
        raise Invalid("FIELD_INVALID", sentence("event_has_no_person"), "user")
    services = context.services
    user = await services.core.directory.users.by_contact(services.tenant, context.channel, context.person)
    return id_text(user.id) if user else f"{context.channel}:{context.person}"


async def control(context: Context, user: str | None) -> Control:
    """Return the control of the jobs of `user`, or with None of the person itself. Raises Forbidden ADMIN_NEEDED,
    Invalid FIELD_INVALID.
    """
    own = await own_user(context)
    wanted = own if user is None else user
    if not wanted:
        raise Invalid("FIELD_INVALID", sentence("user_empty"), "user")
    if wanted == own:
        return Control(own, Actor.USER)
    await check_admin(context)
    return Control(wanted, Actor.ADMIN)


async def check_admin(context: Context) -> None:
    """Check that the person of the event is an administrator. Raises Forbidden ADMIN_NEEDED."""
    if await denial(context, {"required_role": ADMIN}):
        raise Forbidden("ADMIN_NEEDED", sentence("only_administrators_do"))


async def job_of(context: Context, kind: str, user: str | None) -> tuple[JobId, Actor]:
    """Return the job that the action controls. Raises as `control`."""
    if not kind:
        raise Invalid("FIELD_INVALID", sentence("kind_missing"), "kind")
    found = await control(context, user)
    return JobId(context.services.tenant, kind, found.user), found.actor


async def log_change(context: Context, kind: str, user: str, verb: str, reason: str) -> None:
    """Write to the action log that an administrator has changed the job of somebody else by a bot."""
    services, own = context.services, await own_user(context)
    if user == own:
        return
    person = await services.core.directory.users.by_contact(services.tenant, context.channel, context.person or "")
    who = f"person:{own}"
    name = (person.name if person else None) or own
    what, target = f"POST /v1/jobs/{{job_id}}:{verb}", f"/v1/jobs/{kind}.{user}:{verb}"
    action = OperatorAction(who, name, "bot", what, target, why=reason[:MAX_REASON])
    await ActionLog(services.core.store).write(services.tenant, action)


async def unless_done(context: Context, job_id: JobId, refusal: Conflict, *wanted: JobState) -> StoredJob:
    """Return the job if it has one of the wanted states already, as after a repeat of the same step. Otherwise raises
    the refusal."""
    job = await context.services.core.jobs.storage.read(job_id)
    if job is None or job.record.state not in wanted:
        raise refusal
    return job


async def jobs_in_state(
    context: Context, state: JobState | None, kind: str, limit: int
) -> tuple[list[StoredJob], bool]:
    """Return the first `limit` jobs of all users, and whether there may be more."""
    found: list[StoredJob] = []
    cursor = ""
    for _ in range(_MOST_PAGES):
        page, cursor = await context.services.core.jobs.list(
            context.services.tenant, Wanted(state, kind), cursor, _PAGE
        )
        found += page
        if len(found) > limit or not cursor:
            break
    return found[:limit], len(found) > limit or bool(cursor)


async def sign_in_address(context: Context, service: str) -> str:
    """Return the address at which the person signs in to a service; "" if it is signed in, and no job waits for it to
    sign in again. Raises NotFound SIGN_IN_NOT_SET_UP, Invalid SERVICE_UNKNOWN.
    """
    sign_in, tenant, user = _sign_in(context), context.services.tenant, await own_user(context)
    signed_in = await sign_in.is_signed_in(tenant, service, user)
    if signed_in and not await context.services.core.jobs.waits_for_sign_in(tenant, user, service):
        return ""
    return await sign_in.begin(tenant, service, user, await _name(context))


async def sign_out(context: Context, user: str | None, service: str) -> bool:
    """Sign the user out of a service. Returns whether it was signed in. Raises as `control`."""
    found, services = await control(context, user), context.services
    return await sign_user_out(services.core.store, services.sign_in, services.tenant, found.user, service)


def _sign_in(context: Context) -> SignIn:
    """Return the sign-in of this installation. Raises NotFound SIGN_IN_NOT_SET_UP."""
    if context.services.sign_in is None:
        raise NotFound("SIGN_IN_NOT_SET_UP", sentence("no_service_sign_ada_sign_in"))
    return context.services.sign_in


async def _name(context: Context) -> str:
    """Return the person's name in the directory, otherwise in its chat."""
    services = context.services
    user = await services.core.directory.users.by_contact(services.tenant, context.channel, context.person)
    of_event = [str(context.event.get(part) or "") for part in ("first_name", "last_name")]
    return (user.name if user else None) or " ".join(filter(None, of_event))
