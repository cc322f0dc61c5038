"""Everything that stops a command with a sentence instead of a traceback.

StalefuzzError
  + UsageError         what was asked for cannot work; knowable without a server (exit 2)
  + CannotJudge        the run could not reach a verdict (exit 3)
      + ServerStartError   a launched server did not come up
      + UnreachableError   nothing answers at the URL
      + ServerFailure      a server died, hung or broke its protocol while it was in use
"""

from __future__ import annotations


class StalefuzzError(Exception):
    """Root of the tree; ``str()`` is one sentence that names the thing, the cause and the next step."""

    exit_code = 3


class UsageError(StalefuzzError):
    """The command line, a configuration or an input file is wrong."""

    exit_code = 2


class CannotJudge(StalefuzzError):  # noqa: N818 - an outcome, not a fault of ours
    """The run is inconclusive."""


class ServerStartError(CannotJudge):
    """A launched server exited or stayed silent; the message ends with its last log lines."""


class UnreachableError(CannotJudge):
    """No server answers at the URL given."""


class ServerFailure(CannotJudge):
    """A server that answered before has died, hung or sent something that is no answer."""
