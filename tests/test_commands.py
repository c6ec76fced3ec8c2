"""The commands of the shell: help, exit codes, messages."""

import os
import re

import pytest
import yaml
from servers import BINARY, make_config

COMMANDS = ["serve", "validate", "explain", "check", "import", "mock-upstream", "version"]


def write(tmp_path, config, name="weir.yaml"):
    path = tmp_path / name
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False))
    return path


def test_without_a_command_help_is_printed(weir_command):
    run = weir_command()
    assert run.returncode == 0
    for command in COMMANDS:
        assert command in run.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(weir_command, command):
    run = weir_command(command, "--help")
    assert run.returncode == 0
    assert f"weir {command}" in run.stdout
    assert "Example" in run.stdout


def test_an_unknown_command_is_an_error(weir_command):
    run = weir_command("frobnicate")
    assert run.returncode == 2
    assert run.stderr


def test_a_misspelt_command_is_told_the_right_one(weir_command):
    run = weir_command("serv", "--config", "x.yaml")
    assert run.returncode == 2
    assert "weir: there is no command `serv`; did you mean `serve`?" in run.stderr
    assert all(command in run.stderr for command in COMMANDS)


@pytest.mark.parametrize("argument", ["version", "--version"])
def test_version(weir_command, argument):
    run = weir_command(argument)
    assert run.returncode == 0
    assert run.stdout.startswith("weir 0.")


def test_a_configuration_without_its_option_is_told_how_it_is_named(weir_command):
    run = weir_command("serve", "policy.yaml")
    assert run.returncode == 2
    assert "weir serve --config policy.yaml" in run.stderr


def test_check_is_told_that_the_path_is_added(start_weir, weir_command):
    weir = start_weir()
    run = weir_command("check", "--server", weir.api + "/v1/check", "client=a")
    assert run.returncode == 2
    assert f"leave the path out, it is added: --server {weir.api}\n" in run.stderr


@pytest.mark.parametrize(
    ("knob", "message"),
    [
        ("latency-ms", "--knob latency-ms: a value is missing, as in latency-ms=100"),
        ("latencyms=1", "did you mean `latency-ms`?"),
    ],
)
def test_a_knob_without_its_value_is_refused(weir_command, knob, message):
    run = weir_command("mock-upstream", "--listen", "127.0.0.1:0", "--knob", knob)
    assert run.returncode == 1
    assert message in run.stderr


def test_an_empty_configuration_is_not_called_valid_in_silence(weir_command, tmp_path):
    run = weir_command("validate", write(tmp_path, "# nothing yet\n"))
    assert run.returncode == 0
    assert "doors: none" in run.stdout
    assert "there are no `limits`: every call is allowed" in run.stdout


def test_a_pipe_that_is_included_is_refused_instead_of_waited_for(weir_command, tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    path = write(tmp_path, "listen: {api: 127.0.0.1:0}\ninclude: [pipe.yaml]\n")
    run = weir_command("validate", path)
    assert run.returncode == 1
    assert run.stderr.startswith(f"{path}:2:11: include: cannot read ")


def test_serve_without_a_configuration_names_the_remedy(weir_command):
    env = {name: value for name, value in os.environ.items() if name != "WEIR_CONFIG"}
    run = weir_command("serve", env=env)
    assert run.returncode != 0
    assert "--config" in run.stderr and "WEIR_CONFIG" in run.stderr


def test_serve_with_an_absent_file_names_it(weir_command, tmp_path):
    run = weir_command("serve", "--config", tmp_path / "absent.yaml")
    assert run.returncode != 0
    assert "absent.yaml" in run.stderr and "No such file" in run.stderr


def test_serve_takes_the_configuration_from_the_environment(started, tmp_path):
    from servers import Process

    path = write(tmp_path, make_config())
    process = Process([BINARY, "serve"], "weir", env={"WEIR_CONFIG": str(path)})
    started.append(process)
    assert set(process.wait_listening(["gateway", "api", "admin", "ops"])) == {"gateway", "api", "admin", "ops"}
    assert process.stop() == 0


def test_serve_says_which_address_is_taken(start_weir, weir_command, tmp_path):
    running = start_weir()
    config = make_config()
    config["listen"] = {"api": running.addresses["api"]}
    # SO_REUSEPORT lets one user's servers share a port, so that loops can; another socket's owner cannot.
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config["listen"] = {"api": f"127.0.0.1:{taken.getsockname()[1]}"}
        run = weir_command("serve", "--config", write(tmp_path, config))
    assert run.returncode == 1
    assert "listen.api" in run.stderr and "in use" in run.stderr.lower()


def test_validate_says_in_words_what_a_policy_means(weir_command, tmp_path):
    limits = [{"name": "per-client", "per": ["client"], "rate": "300/min", "burst": 50}]
    run = weir_command("validate", write(tmp_path, make_config(limits)))
    assert run.returncode == 0, run.stderr
    assert "per-client" in run.stdout
    assert "at most 350 in any minute" in run.stdout


def test_validate_shows_no_secret(weir_command, tmp_path):
    config = make_config(upstream="http://127.0.0.1:1")
    config["upstreams"][0]["headers"] = {"authorization": "Bearer sk-upstream-secret"}
    config["identity"] = {"secret": "0123456789abcdef-identity-secret"}
    path = write(tmp_path, config)
    for arguments in (["validate", path], ["validate", "--json", path], ["explain", "--config", path, "client=a"]):
        run = weir_command(*arguments)
        assert run.returncode == 0, run.stderr
        assert "sk-upstream-secret" not in run.stdout + run.stderr
        assert "identity-secret" not in run.stdout + run.stderr


def test_validate_says_where_and_what_is_wrong(weir_command, tmp_path):
    path = write(
        tmp_path,
        "listen: {api: 127.0.0.1:0}\nlimits:\n  - {name: a, rate: 5/min, burts: 3}\n  - {name: b, rate: fast}\n",
    )
    run = weir_command("validate", path)
    assert run.returncode == 1
    lines = run.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{path}:3:") and "burts" in lines[0] and "burst" in lines[0]
    assert lines[1].startswith(f"{path}:4:") and "rate" in lines[1]


def test_case20_a_burst_of_zero_is_refused_at_load(weir_command, tmp_path):
    limits = [{"name": "a", "rate": "1/s", "burst": 0}]
    run = weir_command("validate", write(tmp_path, make_config(limits)))
    assert run.returncode == 1
    assert "burst" in run.stderr


def test_case38_two_identical_rules_are_one_error_naming_both_lines(weir_command, tmp_path):
    path = write(
        tmp_path,
        "listen: {api: 127.0.0.1:0}\nlimits:\n  - {name: same, rate: 5/min}\n  - {name: same, rate: 5/min}\n",
    )
    run = weir_command("validate", path)
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"{path}:4:")
    assert ":3" in line.removeprefix(f"{path}:4:") or "line 3" in line


def test_case66_an_unknown_kind_of_identity_is_a_load_error(weir_command, tmp_path):
    run = weir_command("validate", write(tmp_path, make_config(identity={"client": ["cookie", "ip"]})))
    assert run.returncode == 1
    assert "cookie" in run.stderr


def test_what_is_not_built_yet_is_refused_clearly(weir_command, tmp_path):
    limit = {"name": "a", "rate": "1/s", "overrides": [{"when": {"plan": "gold"}, "rate": "2/s"}]}
    run = weir_command("validate", write(tmp_path, make_config([limit])))
    assert run.returncode == 1
    assert "`plan` is not there yet" in run.stderr


REDIS = {"kind": "redis", "url": "redis://127.0.0.1:6379/0"}
SECRET = {"secret": "tests-share-this-secret"}


def test_a_limit_that_the_store_cannot_count_is_a_load_error_with_its_place(weir_command, tmp_path):
    log = {"name": "log", "per": ["client"], "rate": "200000/day", "algorithm": "sliding_window"}
    run = weir_command("validate", write(tmp_path, make_config([log], store=REDIS, identity=SECRET)))
    assert run.returncode == 1
    assert re.search(r"weir\.yaml:\d+:\d+: limit `log`: .*100,?000.*consistency: local", run.stderr), run.stderr
    log["consistency"] = "local"
    run = weir_command("validate", write(tmp_path, make_config([log], store=REDIS, identity=SECRET)))
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:6379", ": store.url: "),
        ("redis://:pa55word@192.0.2.1:6379/0", "insecure"),
        ("redis+sentinel://127.0.0.1:26379", ": store.url: "),
    ],
)
def test_an_address_of_the_store_that_is_none_is_told_without_its_password(weir_command, tmp_path, url, said):
    config = make_config([], store={**REDIS, "url": url}, identity=SECRET)
    run = weir_command("validate", write(tmp_path, config))
    assert run.returncode == 1
    assert said in run.stderr
    line = next(i for i, text in enumerate((tmp_path / "weir.yaml").read_text().splitlines(), 1) if "url: " in text)
    assert re.search(rf"weir\.yaml:{line}:\d+: store\.url: ", run.stderr), run.stderr
    assert "pa55word" not in run.stderr + run.stdout


def test_explain_follows_a_descriptor(weir_command, tmp_path):
    limits = [
        {"name": "users", "domain": "d", "descriptor": [{"key": "database", "value": "users"}], "rate": "5/s"},
        {"name": "any", "domain": "d", "descriptor": [{"key": "database"}], "rate": "9/s"},
    ]
    path = write(tmp_path, {"limits": limits})
    run = weir_command("explain", "--config", path, "--domain", "d", "database=users")
    assert run.returncode == 0, run.stderr
    applies, others = run.stdout.split("does not apply:\n")
    assert "  users: at most 10 in any second" in applies and "any:" not in applies
    assert others == "  any: database=users is more specific\n"
    assert weir_command("explain", "--config", path, "--domain", "d").returncode == 2
    assert weir_command("explain", "--config", path, "--domain", "d", "nonsense").returncode == 2


def test_explain_says_which_limits_apply_and_why_others_do_not(weir_command, tmp_path):
    limits = [
        {"name": "per-client", "per": ["client"], "rate": "300/min"},
        {"name": "chat", "per": ["client"], "rate": "60/min", "match": {"path": "/v1/chat/completions"}},
    ]
    path = write(tmp_path, make_config(limits))
    run = weir_command("explain", "--config", path, "client=alice", "path=/v1/models")
    assert run.returncode == 0, run.stderr
    assert "per-client" in run.stdout and "alice" in run.stdout
    assert "chat" in run.stdout and "path" in run.stdout
    assert weir_command("explain", "--config", path, "nonsense").returncode == 2
    assert weir_command("explain", "--config", path, "tenant=a").returncode == 2


def test_check_exits_by_the_decision(start_weir, weir_command):
    weir = start_weir([{"name": "two", "per": ["client"], "rate": "2/hour"}])
    codes = [weir_command("check", "--server", weir.api, "client=a").returncode for _ in range(3)]
    assert codes == [0, 0, 1]
    denied = weir_command("check", "--server", weir.api, "client=a")
    assert "denied by two" in denied.stdout and "retry after" in denied.stdout
    assert weir_command("check", "--server", weir.api, "--peek", "client=b").returncode == 0
    assert weir_command("check", "--server", weir.api, "--cost", "2", "client=b").returncode == 0
    assert weir_command("check", "--server", weir.api, "--cost", "3", "client=c").returncode == 1


def test_check_exits_2_without_a_decision(start_weir, weir_command):
    weir = start_weir()
    for arguments in (
        ["--server", "http://127.0.0.1:1", "client=a"],
        ["--server", "ftp://127.0.0.1", "client=a"],
        ["--server", weir.api, "nonsense"],
        ["--server", weir.api, "undeclared=1"],
        ["--server", weir.ops, "client=a"],
        [],
    ):
        run = weir_command("check", *arguments)
        assert run.returncode == 2, arguments
        assert run.stderr


def test_check_with_a_token_and_over_a_unix_socket(start_weir, weir_command, tmp_path):
    socket_path = tmp_path / "weir.sock"
    weir = start_weir(
        [{"name": "one", "per": ["client"], "rate": "1/hour"}],
        listen={"api": {"address": f"unix:{socket_path}", "token": "a-token-of-some-length"}},
    )
    server = weir.addresses["api"]
    assert weir_command("check", "--server", server, "client=a").returncode == 2
    token = ["--token", "a-token-of-some-length"]
    assert weir_command("check", "--server", server, *token, "client=a").returncode == 0
    assert weir_command("check", "--server", server, *token, "client=a").returncode == 1
