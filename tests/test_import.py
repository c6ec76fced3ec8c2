"""weir import: what it prints is a configuration that weir reads."""

import pytest

MESSAGING = """
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: {unit: day, requests_per_unit: 5}
  - key: to_number
    quota_mode: true
    rate_limit: {unit: day, requests_per_unit: 100}
"""
MONGO = """
domain: mongo_cps
descriptors:
  - {key: database, value: users, rate_limit: {unit: second, requests_per_unit: 500}}
  - {key: database, shadow_mode: true, rate_limit: {unit: month, requests_per_unit: 4294967295}}
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "messaging.yaml").write_text(MESSAGING)
    (folder / "mongo.yml").write_text(MONGO)
    (folder / "README.md").write_text("no YAML")
    return folder


def test_what_is_imported_is_valid_and_says_the_same(weir_command, folder, tmp_path):
    run = weir_command("import", "envoy-ratelimit", folder)
    assert run.returncode == 0, run.stderr
    assert run.stderr == (
        f"note: {folder}/messaging.yaml:10:17: `quota_mode` has no equivalent: the limit denies like any other\n"
    )
    assert f"# {folder}/messaging.yaml:10:17: `quota_mode` has no equivalent" in run.stdout
    limits = tmp_path / "limits.yaml"
    limits.write_text(run.stdout)
    valid = weir_command("validate", limits)
    assert valid.returncode == 0, valid.stderr
    for domain, entries, expected in [
        ("messaging", ["message_type=marketing", "to_number=1"], "at most 5 in each calendar day (UTC)"),
        ("messaging", ["to_number=1"], "at most 100 in each calendar day (UTC)"),
        ("mongo_cps", ["database=users"], "at most 500 in each window of one second"),
        ("mongo_cps", ["database=x"], "in shadow"),
    ]:
        said = weir_command("explain", "--config", limits, "--domain", domain, *entries).stdout
        assert expected in said.split("does not apply:")[0], said
    none = weir_command("explain", "--config", limits, "--domain", "messaging", "message_type=marketing")
    assert none.stdout.startswith("applies:\n  none\n")


def test_single_files_are_read_in_their_order(weir_command, folder):
    run = weir_command("import", "envoy-ratelimit", folder / "mongo.yml", folder / "messaging.yaml")
    assert run.returncode == 0, run.stderr
    assert run.stdout.index("mongo_cps") < run.stdout.index("messaging.to_number")


def test_mistakes_are_told_with_their_place_and_nothing_is_printed(weir_command, folder):
    wrong = folder / "wrong.yaml"
    wrong.write_text("domain: d\ndescriptors:\n  - {key: a, rate_limt: {}}\n")
    run = weir_command("import", "envoy-ratelimit", folder)
    assert run.returncode == 1
    assert run.stdout == ""
    assert run.stderr.startswith(f"{wrong}:3:14: unknown key `descriptors[].rate_limt`")


def test_a_folder_without_files_and_a_missing_file_are_errors(weir_command, tmp_path):
    run = weir_command("import", "envoy-ratelimit", tmp_path)
    assert run.returncode == 1 and "has no *.yaml" in run.stderr
    run = weir_command("import", "envoy-ratelimit", tmp_path / "none.yaml")
    assert run.returncode == 1 and "none.yaml" in run.stderr
    assert weir_command("import").returncode == 2
    run = weir_command("import", "envoy-ratelimit", "--help")
    assert run.returncode == 0 and "weir import envoy-ratelimit config/" in run.stdout
