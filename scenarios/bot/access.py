"""Permission to run an action, by the roles of the bot (C-68). Pure."""

from collections.abc import Collection, Mapping

from scenarios.bot.data import Data
from scenarios.bot.model import Role
from scenarios.words import Text, sentence


def refusal(
    roles: Mapping[str, Role], fields: Mapping[str, Data], user: Data, *, ids: Collection[str] = (), role: str = ""
) -> Text:
    """Return why this person may not run an action with these fields; empty if it may. `user`: the id by which roles
    list the person; `ids`: further ones. `role`: a further role of the person.

    `required_permission` needs all of its permissions and wins over `required_role`, which needs one of its roles.
    """
    known = {str(user), *ids}
    own = {name: one for name, one in roles.items() if name == role or not known.isdisjoint(map(str, one.users))}
    if permissions := _words(fields.get("required_permission")):
        missing = permissions - {permission for one in own.values() for permission in one.permissions}
        return sentence("person_lacks_permission", words=", ".join(sorted(missing))) if missing else ""
    allowed = _words(fields.get("required_role"))
    if allowed and allowed.isdisjoint({*own, role}):
        return sentence("person_has_none_roles", words=", ".join(sorted(allowed)))
    return ""


def _words(value: Data) -> set[str]:
    return {str(one) for one in (value if isinstance(value, list | tuple) else [value]) if one not in (None, "")}
