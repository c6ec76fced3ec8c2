"""docs/openapi.yaml is valid, and what the doors really answer is what it says."""

import jsonschema
import pytest
import yaml
from servers import ROOT, http, make_config

DOCUMENT = ROOT / "docs" / "openapi.yaml"


@pytest.fixture(scope="module")
def document():
    return yaml.safe_load(DOCUMENT.read_text())


def resolve(document, node):
    while isinstance(node, dict) and "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def schema_of(document, method, path, status, content_type="application/json"):
    operation = resolve(document, document["paths"][path])[method]
    responses = operation["responses"]
    response = resolve(document, responses.get(str(status)) or responses.get("default"))
    return response["content"][content_type]["schema"]


def hold(document, answer, method, path):
    """Validates a real answer against the schema of its status."""
    kind = answer.headers["content-type"].partition(";")[0]
    schema = schema_of(document, method, path, answer.status_code, kind)
    # References are resolved against the whole document.
    validator = jsonschema.Draft202012Validator({**schema, "components": document.get("components", {})})
    errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(answer.json())]
    assert errors == [], answer.text
    return answer


def test_the_document_is_valid_openapi():
    from openapi_spec_validator import validate

    validate(yaml.safe_load(DOCUMENT.read_text()))


def test_decisions_are_as_described(document, start_weir):
    weir = start_weir(
        [
            {"name": "two", "per": ["client"], "rate": "2/hour"},
            {"name": "money", "per": ["client"], "rate": "5 usd/day"},
            {"name": "shadow", "per": ["client"], "rate": "1/hour", "enforce": "shadow"},
            {"name": "slots", "per": ["client"], "parallel": 3, "match": {"path": "/slow"}},
        ],
        listen={"gateway": None},  # Which does not meter usd.
    )

    def post(path, body, **query):
        return http.post(weir.api + path, json=body, params=query)

    def check(body, **query):
        return hold(document, post("/v1/check", body, **query), "post", "/v1/check")

    assert check({"attributes": {"client": "a"}}).json()["allowed"]
    reserved = check(
        {
            "attributes": {"client": "a", "path": "/slow"},
            "cost": {"requests": 1, "usd": 0.25},
            "reserve": {"ttl": "60s"},
        }
    )
    assert reserved.json()["reservation"]
    assert check({"attributes": {"client": "a"}}, status=429).status_code == 429
    check({"key": "k", "rule": {"rate": "10/min", "burst": 10, "algorithm": "token_bucket"}, "cost": 1})
    check(
        {
            "checks": [
                {"attributes": {"client": "b"}},
                {"attributes": {"nobody": "b"}},
                {"key": "k", "rule": {"rate": "0/s"}},
            ]
        }
    )
    assert check({"attributes": {"client": "a"}, "cost": -1}).status_code == 400
    assert check({"attributes": {"client": "a"}, "peek": True}).status_code == 200

    settle = post("/v1/settle", {"reservation": reserved.json()["reservation"], "actual": {"requests": 1, "usd": 0.1}})
    assert hold(document, settle, "post", "/v1/settle").status_code == 200
    assert (
        hold(document, post("/v1/settle", {"reservation": "0" * 32, "actual": {}}), "post", "/v1/settle").status_code
        == 404
    )
    assert hold(document, post("/v1/release", {"reservation": "0" * 32}), "post", "/v1/release").status_code == 404
    other = check({"attributes": {"client": "c"}, "reserve": True}).json()["reservation"]
    assert hold(document, post("/v1/release", {"reservation": other}), "post", "/v1/release").status_code == 200
    hold(document, http.get(f"{weir.api}/v1/limits"), "get", "/v1/limits")


def test_admin_answers_are_as_described(document, start_weir):
    weir = start_weir([{"name": "two", "per": ["client"], "rate": "2/hour"}])
    for _ in range(3):
        weir.decide({"client": "a"})
    hold(document, http.post(f"{weir.admin}/admin/reload"), "post", "/admin/reload")
    hold(document, http.get(f"{weir.admin}/admin/state?client=a"), "get", "/admin/state")
    hold(document, http.get(f"{weir.admin}/admin/top?by=denied&n=5"), "get", "/admin/top")
    body = {"limit": "two", "attributes": {"client": "a"}}
    hold(document, http.post(f"{weir.admin}/admin/reset", json=body), "post", "/admin/reset")
    weir.write("listen: {api: 127.0.0.1:0}\nlimits: 7\n")
    assert hold(document, http.post(f"{weir.admin}/admin/reload"), "post", "/admin/reload").status_code == 422
    weir.write(make_config([{"name": "two", "per": ["client"], "rate": "2/hour"}], threads=1))
    assert hold(document, weir.reload(), "post", "/admin/reload").status_code == 409
    body = {"limit": "none", "attributes": {}}
    answer = http.post(f"{weir.admin}/admin/reset", json=body)
    assert hold(document, answer, "post", "/admin/reset").status_code == 404
    for path in ["/admin/state?nobody=a", "/admin/top?by=nobody", "/admin/top?n=1001"]:
        answer = http.get(weir.admin + path)
        assert hold(document, answer, "get", path.partition("?")[0]).status_code == 400


def test_ops_answers_are_as_described(document, start_weir):
    weir = start_weir([])
    for path in ["/livez", "/healthz", "/readyz"]:
        answer = http.get(weir.ops + path)
        assert answer.status_code == 200
        jsonschema.validate(answer.text, schema_of(document, "get", path, 200, "text/plain"))
    answer = http.get(f"{weir.ops}/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    jsonschema.validate(answer.text, schema_of(document, "get", "/metrics", 200, "text/plain"))


def test_every_path_of_the_doors_is_described(document, start_weir):
    weir = start_weir([])
    known = set()
    for door in [weir.api, weir.admin, weir.ops]:
        # A path that does not exist is answered with those that do: "POST /v1/check; GET, HEAD /v1/limits".
        message = http.get(f"{door}/none").json()["error"]["message"]
        for endpoint in message.partition("there are: ")[2].split("; "):
            methods, _, path = endpoint.rpartition(" ")
            known |= {(path, method.lower()) for method in methods.split(", ") if method != "HEAD"}
    described = {(path, method) for path, item in document["paths"].items() for method in item if method != "servers"}
    assert described == known
