"""Help and version, in the layout that people and scripts know."""

from dbdyno.sysbench.options.command_line import workload_help


def test_help_is_shown_whatever_else_is_typed(sysbench):
    assert sysbench("--threads=1K --help oltp_read_write") == 0
    shown = sysbench.stdout
    assert shown.startswith("Usage:\n  sysbench [options]... [testname] [command]\n")
    assert "  --threads=N " in shown
    assert "  --mysql-host=[LIST,...] " in shown
    assert "  oltp_point_select\n" in shown


def test_help_of_a_test_lists_its_options(sysbench):
    assert sysbench("oltp_read_write help") == 0
    assert "\noltp_read_write options:\n  --auto_inc[=on|off] " in sysbench.stdout
    assert "  --table_size=N                rows of a table [10000]\n" in sysbench.stdout


def test_help_of_a_random_select_lists_its_own_option_in_its_place():
    shown = workload_help("select_random_points")
    assert (
        "\n  --random_points=N             values of k in the list [10]\n  --range_selects" in shown
    )
    assert "--delta" not in shown


def test_version_is_where_scripts_look_for_it(sysbench):
    assert sysbench("--version") == 0
    assert sysbench.stdout.split()[:2] == ["sysbench", "1.0.20"]
