"""Where the page listens, and what is said when it cannot."""

from __future__ import annotations

import pytest

from dbdyno.errors import UsageError
from dbdyno.serve.server import address, listen


def test_a_free_port_is_found_and_named() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert address(listening) == f"http://127.0.0.1:{port}/"
        with pytest.raises(UsageError, match="cannot be served there") as caught:
            listen("127.0.0.1", port)
    assert f"port {port}" in str(caught.value)
    assert "--port" in str(caught.value)


def test_an_address_of_the_other_kind_is_written_as_browsers_want_it() -> None:
    with listen("::1", 0) as listening:
        assert address(listening).startswith("http://[::1]:")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "lab.example", "10.0.0..1", ""])
def test_other_machines_are_sent_to_a_tunnel(host: str) -> None:
    with pytest.raises(UsageError, match="on this machine only") as caught:
        listen(host, 0)
    assert "ssh -L" in str(caught.value)
