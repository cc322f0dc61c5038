"""Servers with OpenAI-style routes as the rig sees them: one engine a profile, attached to, never launched."""

from __future__ import annotations

from functools import partial

from fuzzer.options import ServerOptions
from fuzzer.servers.engine import Engine
from fuzzer.servers.generic_server import GenericServer, owners
from fuzzer.servers.http import Connection
from fuzzer.servers.profiles import OPENAI, PROFILES, Profile


def generic_engine(profile: Profile) -> Engine:
    """The engine that a profile describes."""
    return Engine(profile.name, partial(_attach, profile), partial(_speaks, profile), server=profile.server)


def _attach(profile: Profile, url: str, options: ServerOptions) -> GenericServer:
    return GenericServer(url, profile, adapters=options.adapters or (), admin=options.allow_admin)


def _speaks(profile: Profile, connection: Connection) -> bool:
    found = owners(connection)
    return bool(found) if profile is OPENAI else bool(found.intersection(profile.owners))


GENERIC = tuple(generic_engine(profile) for profile in PROFILES)
