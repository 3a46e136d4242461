"""A model of the directory in plain Python: what each operation returns, and what is there afterwards."""

from dataclasses import dataclass, field

from core.model.people import User

Object = tuple[str, str]


@dataclass
class Model:
    """One tenant. Every method returns the code of the refusal, "" if there is none."""

    users: dict[str, User] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=dict)
    supergroups: dict[str, set[str]] = field(default_factory=dict)
    owned: set[tuple[str, Object]] = field(default_factory=set)

    def put_user(self, user: User, *, is_new: bool) -> str:
        name = str(user.id)
        if (name in self.users) == is_new:
            return "USER_EXISTS" if is_new else "USER_NOT_FOUND"
        others = [one for other, one in self.users.items() if other != name]
        if user.email is not None and any(one.email == user.email for one in others):
            return "EMAIL_TAKEN"
        if any(contacts_of(one) & contacts_of(user) for one in others):
            return "CONTACT_TAKEN"
        self.users[name] = user
        return ""

    def delete_user(self, user: str) -> str:
        if self.users.pop(user, None) is None:
            return "USER_NOT_FOUND"
        for members in self.groups.values():
            members.discard(user)
        self.owned = {(owner, one) for owner, one in self.owned if owner != user}
        return ""

    def create_group(self, group: str, members: list[str]) -> str:
        if group in self.groups:
            return "GROUP_EXISTS"
        if not set(members) <= self.users.keys():
            return "USER_NOT_FOUND"
        self.groups[group] = set(members)
        return ""

    def delete_group(self, group: str) -> str:
        if self.groups.pop(group, None) is None:
            return "GROUP_NOT_FOUND"
        for parts in self.supergroups.values():
            parts.discard(group)
        self._drop(("group", group))
        return ""

    def set_member(self, group: str, user: str, *, member: bool) -> str:
        if group not in self.groups:
            return "GROUP_NOT_FOUND"
        if user not in self.users:
            return "USER_NOT_FOUND"
        (self.groups[group].add if member else self.groups[group].discard)(user)
        return ""

    def create_supergroup(self, supergroup: str, groups: list[str]) -> str:
        if supergroup in self.supergroups:
            return "SUPERGROUP_EXISTS"
        if not set(groups) <= self.groups.keys():
            return "GROUP_NOT_FOUND"
        self.supergroups[supergroup] = set(groups)
        return ""

    def delete_supergroup(self, supergroup: str) -> str:
        if self.supergroups.pop(supergroup, None) is None:
            return "SUPERGROUP_NOT_FOUND"
        self._drop(("supergroup", supergroup))
        return ""

    def set_part(self, supergroup: str, group: str, *, part: bool) -> str:
        if supergroup not in self.supergroups:
            return "SUPERGROUP_NOT_FOUND"
        if group in self.supergroups[supergroup] and part:
            return ""
        if group not in self.groups:
            return "GROUP_NOT_FOUND"
        owners = [user for user, one in self.owned if one == ("supergroup", supergroup)]
        if part and any((user, ("group", group)) not in self.owned for user in owners):
            return "GROUP_NOT_OWNED"
        (self.supergroups[supergroup].add if part else self.supergroups[supergroup].discard)(group)
        return ""

    def own(self, user: str, owned: Object) -> str:
        if code := self._missing(user, owned):
            return code
        kind, name = owned
        groups = self.supergroups[name] if kind == "supergroup" else set()
        if any((user, ("group", group)) not in self.owned for group in groups):
            return "GROUP_NOT_OWNED"
        self.owned.add((user, owned))
        return ""

    def disown(self, user: str, owned: Object) -> str:
        if code := self._missing(user, owned):
            return code
        self.owned.discard((user, owned))
        if owned[0] == "group":
            for name, groups in self.supergroups.items():
                if owned[1] in groups:
                    self.owned.discard((user, ("supergroup", name)))
        return ""

    def _missing(self, user: str, owned: Object) -> str:
        if user not in self.users:
            return "USER_NOT_FOUND"
        objects = self.groups if owned[0] == "group" else self.supergroups
        return "" if owned[1] in objects else f"{owned[0].upper()}_NOT_FOUND"

    def _drop(self, dropped: Object) -> None:
        self.owned = {(user, one) for user, one in self.owned if one != dropped}


def contacts_of(user: User) -> set[Object]:
    return {(channel, one) for channel, addresses in user.contacts.items() for one in addresses}
