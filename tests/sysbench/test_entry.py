"""What is refused, in which words, on which stream; help, version and grammar."""

import os
import subprocess
import sys

import pytest

ON_STDERR = {
    "oltp_read_write run x": "Unrecognized command line argument: x\n",
    "oltp_read_write --tabel_size=5 run": (
        "invalid option: --tabel_size=5\n  hint: did you mean --table-size?\n"
    ),
    "oltp_read_write --qqq run": "invalid option: --qqq\n",
    "oltp_read_write --skip_trx=maybe run": (
        "invalid option: --skip_trx=maybe\n  hint: it takes on or off\n"
    ),
    "oltp_read_write --threads=1K run": "Invalid value for the 'threads' option: '1K'\n",
    "oltp_read_write --num-threads=1K run": "Invalid value for the 'num_threads' option: '1K'\n",
    "oltp_read_write --rand-seed=x run": "Invalid value for the 'rand_seed' option: 'x'\n",
    "oltp_read_write --percentile=p99 run": "Invalid value for the 'percentile' option: 'p99'\n",
    "oltp_read_write --db-driver=pgsql --pgsql-sslmode=some run": (
        "invalid option: --pgsql-sslmode=some\n"
        "  hint: it takes disable, allow, prefer, require, verify-ca, verify-full\n"
    ),
    "oltp_read_write --mysql-ssl=maybe run": (
        "invalid option: --mysql-ssl=maybe\n"
        "  hint: it takes on, off, disabled, preferred, required, verify_ca, verify_identity\n"
    ),
    "oltp_read_write walk": "Unknown command: walk\n",
}


FATAL = {
    "oltp_read_write --percentile=101 run": "Invalid value for --percentile: 101",
    "oltp_read_write --histogram --percentile=0 run": (
        "--histogram cannot be used with --percentile=0"
    ),
    "oltp_read_write --report-interval=0.015 --report-checkpoints=1 run": (
        "--report-interval=0.015 and --report-checkpoints have no step in common of 0.01 s or more;"
        " take an interval such as 0.1"
    ),
    "oltp_read_write --mysql-ssl=required --mysql-ssl-key=none.pem run": (
        "Invalid value for --mysql-ssl-key: there is no file 'none.pem'."
    ),
    "oltp_read_write --rand-type=zip run": "Invalid random numbers distribution: zip.",
    "oltp_read_write --rand-type=zipfian --rand-zipfian-exp=-1 run": (
        "Invalid value for the zipfian distribution's exponent: -1.0."
    ),
    "oltp_read_write --rand-type=pareto --rand-pareto-h=nan run": (
        "Invalid value for the pareto distribution's h: nan."
    ),
    "oltp_reed_write run": (
        "Cannot find benchmark 'oltp_reed_write': no such built-in test, file or module"
    ),
    "oltp_read_write": (
        "Command is required. Supported commands: prepare, prewarm, run, cleanup, help"
    ),
    "oltp_read_write --thread-init-timeout=0 run": "Invalid value for --thread-init-timeout: 0.",
    "oltp_read_write --db-driver=pgsql --pgsql-port=70000 run": (
        "Invalid value for --pgsql-port: '70000'. It must be from 1 to 65535."
    ),
    "oltp_read_write --db-ps-mode=zip run": "Invalid value for db-ps-mode: zip",
    "oltp_read_write --mysql-host=h --mysql-port=0 run": (
        "Invalid value for --mysql-port: '0'. It must be from 1 to 65535."
    ),
    "oltp_read_write --mysql-host= run": "No MySQL hosts specified, aborting",
    "oltp_read_write --mysql-port= run": "No MySQL ports specified, aborting",
    "oltp_read_write --mysql-ignore-errors=deadlock run": (
        "Invalid value for --mysql-ignore-errors: 'deadlock'. It is no error code."
    ),
    "oltp_read_write --table-size=1M prepare": (
        "Invalid value for --table_size: '1M'. It must be a whole number; the numbers of a test"
        " take no suffix K, M or G"
    ),
    "oltp_read_write --tables=1.5 cleanup": (
        "Invalid value for --tables: '1.5'. It must be a whole number; the numbers of a test"
        " take no suffix K, M or G"
    ),
}


@pytest.mark.parametrize("line", [*ON_STDERR, *FATAL])
def test_argument_errors_go_to_stderr_and_fatal_ones_to_stdout(sysbench, engine, line):
    assert sysbench(line) == 1
    assert sysbench.stderr == ON_STDERR.get(line, "")
    if line in FATAL:
        assert sysbench.stdout.splitlines()[-1] == f"FATAL: {FATAL[line]}"
    assert engine.specs == []


BEFORE_THE_BANNER = {
    "--threads=0": "FATAL: Invalid value for --threads: 0.\n\n",
    "--warmup-time=-1": "FATAL: Invalid value for --warmup-time: -1.\n\n",
    "--time=-1": "FATAL: Invalid value for --time: -1.\n\n",
    "--events=-1": "FATAL: Invalid value for --events: -1.\n\n",
    "--thread-stack-size=0": "FATAL: Invalid value for thread-stack-size: 0.\n\n",
    "--verbosity=6": "Invalid value for verbosity: 6\n",
}


@pytest.mark.parametrize("option", BEFORE_THE_BANNER)
def test_a_number_out_of_range_is_refused_in_sysbench_s_line(sysbench, engine, option):
    assert sysbench(f"oltp_read_write {option} run") == 1
    assert (sysbench.stdout, sysbench.stderr) == (BEFORE_THE_BANNER[option], "")
    assert engine.specs == []


@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("run", "`thread_init'"),
        ("prepare", "`sysbench.cmdline.call_command'"),
        ("cleanup", "`cleanup'"),
    ],
)
def test_an_unknown_driver_is_told_by_what_asks_for_it(sysbench, engine, command, function):
    assert sysbench(f"oltp_read_write --db-driver=oracle {command}") == 1
    told = [line for line in sysbench.stdout.splitlines() if line.startswith("FATAL: ")]
    assert told[:2] == [
        "FATAL: invalid database driver name: 'oracle'",
        f"FATAL: {function} function failed: oltp_common.lua: failed to initialize the DB driver",
    ]
    assert (engine.specs, sysbench.stderr) == ([], "")


def test_own_options_are_checked_after_the_banner(sysbench):
    sysbench("oltp_read_write --nonsense run")
    assert sysbench.stdout.startswith("sysbench 1.0.20 (using dbdyno ")


def test_starting_needs_no_heavy_library():
    code = (
        "import sys; before = set(sys.modules); import dbdyno.sysbench.entry as s;"
        "s.main(['cpu', '--events=1', '--report-interval=1', '--verbosity=0', 'run']);"
        "heavy = {'pydantic', 'typer', 'rich', 'numpy', 'scipy', 'argparse', 'difflib', 'typing',"
        " 're', 'json', 'enum', 'collections', 'contextlib', 'signal', 'threading', 'pathlib'};"
        "sys.exit(','.join(heavy & set(sys.modules) - before) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_ends_it_quietly():
    code = "import sys, dbdyno.sysbench.entry as s; sys.exit(s.main(['--version']))"
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_no_password_stands_in_the_process_list(shell):
    script = (
        "io.write(io.open('/proc/self/cmdline'):read('*a'):gsub('%z', ' '), '\\n')\n"
        "sysbench.cmdline.options = { own_password = {'', 'x'} }\n"
        "function help() print(sysbench.opt.mysql_password, sysbench.opt.own_password) end\n"
    )
    secrets = ("secret-4711", "secret-4712", "secret-4713")
    options = "--mysql-password={} --pgsql_password={} --own-password={}".format(*secrets)
    ended = shell(f"script.lua {options} --threads=2 help", script)
    listed, _, said = ended.stdout.partition("--threads=2 help")
    assert "--pgsql_password= " in listed, ended
    assert "secret" not in listed
    assert f"{secrets[0]}\t{secrets[2]}" in said
