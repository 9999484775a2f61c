from dbdyno.servers.base import Credentials, Endpoint, Instance, Server, ServerSpec
from dbdyno.servers.mysql.instance import MysqlInstance
from dbdyno.servers.mysql.server import MysqlServer


def owed(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def test_a_mysql_server_has_everything_a_server_owes():
    made_at_start = {"label", "pid", "endpoint", "credentials"}
    assert owed(Server) - made_at_start <= set(dir(MysqlServer))


def test_a_mysql_instance_has_everything_an_instance_owes():
    assert owed(Instance) - {"spec", "folder"} <= set(dir(MysqlInstance))


def test_no_password_is_printed_with_its_owner():
    assert repr(Credentials("dbdyno", "secret")) == "Credentials(user='dbdyno')"


def test_a_spec_without_settings_takes_the_common_ones():
    assert ServerSpec("fast", "mysql:8.0.15").settings == {}
    assert Endpoint("127.0.0.1", 3306, None).socket is None
