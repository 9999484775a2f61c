"""Makes running servers a primary and its replicas, and waits until they are.

The replicas' user is made anew at each start with a password that only the servers keep. The order
matters: no commit may wait before a replica can answer, and none may go unwaited afterwards; so the
user is made first, waiting is switched on next, and replicas are connected last.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from dbdyno.errors import ServerError
from dbdyno.plan.plan_systems import TopologyPlan
from dbdyno.servers.base import Credentials, Server
from dbdyno.servers.mysql.topology_words import Words

USER: Final = "dbdyno_replica"
PASSWORD_BYTES: Final = 16  # as hexadecimal, all that a replica takes
JOIN_S_MAX: Final = 60.0
LOOK_S: Final = 0.05
RECEIVES, APPLIES, RECEIVE_ERROR, APPLY_ERROR = 10, 11, 35, 37
"""Columns of a replica's status; their order is the same in all versions."""
GROUP_RIGHTS: Final = "REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM"
ONLINE: Final = (
    "SELECT COUNT(*) FROM performance_schema.replication_group_members"
    " WHERE member_state = 'ONLINE'"
)


@dataclass(frozen=True)
class Links:
    """How a primary's replicas are joined to it.

    Attributes:
        authentication: plugin of the replicas' user.
    """

    plan: TopologyPlan
    words: Words
    authentication: str

    def join(self, primary: Server, replicas: Sequence[Server]) -> None:
        """Have all replicas follow the primary, commits waiting as the plan says.

        Raises:
            ServerError: a replica did not follow; the server's own reason is quoted.
        """
        who = Credentials(USER, secrets.token_hex(PASSWORD_BYTES))
        begin = primary.ask(self.words.position)[0][0]
        self._make_user(primary, who)
        if self.plan.replication == "group":
            self._join_group(primary, replicas, who)
            return
        if self.plan.replication == "semisync":
            primary.ask(f"SET GLOBAL {self.words.variable('source', 'enabled')} = ON")
        for replica in replicas:
            self._follow(primary, replica, who, begin)
        for replica in replicas:
            _wait(partial(self._follows, replica), replica, self._trouble(replica))
        if self.plan.replication == "semisync":
            _wait(lambda: self._answering(primary) == len(replicas), primary, self._silence)

    def running(self, primary: Server, replicas: Sequence[Server]) -> int:
        """How many replicas receive and apply now."""
        if self.plan.replication == "group":
            return max(0, int(primary.ask(ONLINE)[0][0]) - 1)
        return sum(self._follows(replica) for replica in replicas)

    def _make_user(self, primary: Server, who: Credentials) -> None:
        name = f"'{who.user}'@'%'"
        rights = GROUP_RIGHTS if self.plan.replication == "group" else "REPLICATION SLAVE"
        if self.words.mariadb:
            orders = [f"GRANT {rights} ON *.* TO {name} IDENTIFIED BY '{who.password}'"]
        else:
            word = f"IDENTIFIED WITH {self.authentication} BY '{who.password}'"
            orders = [f"CREATE USER IF NOT EXISTS {name}", f"ALTER USER {name} {word}"]
            orders.append(f"GRANT {rights} ON *.* TO {name}")
        for order in orders:
            _tell(primary, order, who.password)

    def _follow(self, primary: Server, replica: Server, who: Credentials, begin: str) -> None:
        words, endpoint = self.words, primary.endpoint
        known = replica.ask(words.order("SHOW"))
        if known:  # its data was kept from an earlier start
            replica.ask(words.order("STOP"))
        elif words.mariadb:  # MySQL's copies tell by themselves what they hold
            replica.ask("RESET MASTER")
            replica.ask(f"SET GLOBAL gtid_slave_pos = '{begin}'")
        follow = words.follow(endpoint.host, endpoint.port, who.user, who.password)
        _tell(replica, follow, who.password)
        replica.ask(words.order("START"))

    def _follows(self, replica: Server) -> bool:
        """Whether a replica receives and applies; ServerError if it has given up."""
        status = replica.ask(self.words.order("SHOW"))
        return bool(status) and status[0][RECEIVES] == status[0][APPLIES] == "Yes"

    def _trouble(self, replica: Server) -> Callable[[], str]:
        def told() -> str:
            status = replica.ask(self.words.order("SHOW"))
            errors = (status[0][RECEIVE_ERROR], status[0][APPLY_ERROR]) if status else ()
            return "; ".join(filter(None, errors)) or "no error in its status"

        return told

    def _answering(self, primary: Server) -> int:
        """Replicas that acknowledge, once waiting is on; else 0."""
        seen = primary.status()
        # MySQL tells ON as a word, which is no number: only the replicas are counted here.
        return int(seen.get(self.words.counter("clients"), 0))

    def _silence(self) -> str:
        return "fewer replicas acknowledge than follow: see their error logs for semi-sync"

    def _join_group(self, primary: Server, replicas: Sequence[Server], who: Credentials) -> None:
        begin = f"START GROUP_REPLICATION USER='{who.user}', PASSWORD='{who.password}'"
        primary.ask("SET GLOBAL group_replication_bootstrap_group = ON")
        _tell(primary, begin, who.password)
        primary.ask("SET GLOBAL group_replication_bootstrap_group = OFF")
        for number, replica in enumerate(replicas, start=1):
            _tell(replica, begin, who.password)
            _wait(
                partial(self._online, primary, number),
                replica,
                lambda: "the group did not take it in time",
            )

    def _online(self, primary: Server, number: int) -> bool:
        return int(primary.ask(ONLINE)[0][0]) == 1 + number


def _tell(server: Server, order: str, secret: str) -> None:
    """An order that holds a secret, which no error may repeat."""
    try:
        server.ask(order)
    except ServerError as error:
        told = (error.message, error.found or "")
        message, found = (text.replace(secret, "…") for text in told)
        raise ServerError(message, found=found or None, hint=error.hint) from None


def _wait(joined: Callable[[], bool], server: Server, trouble: Callable[[], str]) -> None:
    ends = time.monotonic() + JOIN_S_MAX
    while not joined():
        if time.monotonic() > ends or not server.alive():
            raise ServerError(
                f"{server.label}: it did not join its primary within {JOIN_S_MAX:.0f} s",
                found=f"{trouble()}; its last words: {server.last_words() or 'none'}",
                hint="take out the settings that its log complains of",
            )
        time.sleep(LOOK_S)
