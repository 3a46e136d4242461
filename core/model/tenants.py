"""The names of tenants, and names that no other tenant has. Pure."""

DEFAULT_TENANT = "default"


def own_name(tenant: str, name: str) -> str:
    """Return a name that no other tenant has: all tenants of a tube share its lanes and its unique names. The default
    tenant's names are as they are.
    """
    return name if tenant == DEFAULT_TENANT else f"{tenant}/{name}"
