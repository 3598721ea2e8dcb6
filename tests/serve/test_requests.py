"""What cannot be translated is refused, and logged without its text."""

import base64
import json
import re

import pytest

from tests.serve.serving import GOOD, MAX_CHARACTERS, STABLE, make_app, served, serving


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        ("/translate", {**GOOD, "q": ["Geheim", 1]}, 400, "q"),
        ("/translate", {**GOOD, "target": "fr"}, 400, "de to en"),
        ("/translate", {**GOOD, "format": "html"}, 400, "format"),
        ("/translate", {**GOOD, "q": "Geheim" * MAX_CHARACTERS}, 413, "500"),
        ("/translate", {**GOOD, "q": "Geheim\ud800"}, 400, "UTF-8"),
        ("/translate", ["Geheim"], 400, "JSON"),
        (
            "/v2/translate",
            {"text": ["Geheim"], "target_lang": "EN", "tag_handling": "xml"},
            400,
            "tag_handling",
        ),
        ("/v2/translate", {"q": "Geheim", "target_lang": "EN"}, 400, "text: expected a value"),
        ("/detect", {}, 400, "q"),
        ("/Geheim", GOOD, 404, ""),
        ("/translate?q=Geheim%FF", b"", 400, "UTF-8"),
        ("/translate", b"Geheim" * 100_000, 413, ""),
    ],
)
def test_what_cannot_be_translated_is_refused_and_logged_without_text(
    client, caplog, path, body, status, named
):
    caplog.set_level("INFO")
    answered, text = client.ask("POST", path, body)
    assert answered == status
    assert named in text
    assert "Geheim" not in text
    client.ask("GET", "/health")  # the line of the refused request is written before
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith(("seq2seq", "uvicorn"))
    ]
    assert [str(status) in line for line in lines if "health" not in line] == [True]
    assert "Geheim" not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[" * 6_000,
        b'{"q": ' + b"9" * 5_000 + b"}",
        b"\xff\xfe",
        b'[["q", "a"], ["target", "en"]]',
        b'{"q": "a"' + b" " * 1_000,
    ],
)
def test_broken_json_is_refused(client, body):
    assert client.ask("POST", "/translate", body, {"Content-Type": "application/json"})[0] == 400


@pytest.mark.usefixtures("app")
def test_a_key_is_needed_for_all_but_health_and_languages():
    with serving(make_app(served(("de", "en")), key="Schlüssel")) as client:
        assert client.ask("POST", "/translate", {**GOOD, "api_key": "Schlüssel"})[0] == 200
        wrong = {"Authorization": "DeepL-Auth-Key falsch"}
        assert client.ask("POST", "/translate", GOOD, wrong)[0] == 403
        for path in ("/translate", "/detect"):
            assert client.ask("POST", path, GOOD)[0] == 403
        for path in ("/metrics", "/v2/usage"):
            assert client.ask("GET", path)[0] == 403
        assert client.ask("GET", "/")[0] == 401
        for path in ("/health", "/languages"):
            assert client.ask("GET", path)[0] == 200


@pytest.mark.parametrize(
    ("scheme", "status"),
    [
        ("DeepL-Auth-Key", 200),
        ("deepl-auth-key", 200),
        ("Bearer", 200),
        ("Digest", 403),
        ("", 403),
    ],
)
def test_a_key_is_read_under_the_schemes_that_clients_send(scheme, status):
    with serving(make_app(served(), key="key")) as client:
        headers = {"Authorization": f"{scheme} key"}
        assert client.ask("GET", "/v2/usage", headers=headers)[0] == status


@pytest.mark.usefixtures("app")
def test_a_missing_key_is_not_the_word_none():
    with serving(make_app(served(("de", "en")), key="None")) as client:
        assert client.ask("POST", "/translate", GOOD)[0] == 403


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_key_beyond_ascii_is_accepted_in_the_header(encoding):
    with serving(make_app(served(("de", "en")), key="Schlüssel")) as client:
        header = {"Authorization": "DeepL-Auth-Key Schlüssel".encode(encoding)}
        assert client.ask("POST", "/translate", GOOD, header)[0] == 200


def test_a_browser_sends_the_key_as_a_password(served_page):
    with serving(make_app(served(), served_page, key="Schlüssel")) as client:
        assert client.ask("GET", "/")[0] == 401
        password = base64.b64encode("any:Schlüssel".encode()).decode()
        assert client.ask("GET", "/", headers={"Authorization": f"Basic {password}"})[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:5000", 200),
        ("[::1]:5000", 200),
        ("192.168.0.7:5000", 200),
        ("translate.example:5000", 200),
        ("TRANSLATE.example", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("[::1", 403),
    ],
)
def test_names_of_other_hosts_are_refused(host, status):
    with serving(make_app(served(), hosts=["translate.example"])) as client:
        assert client.ask("GET", "/health", headers={"Host": host})[0] == status


ORIGIN = "https://example.org"


def test_only_pages_of_allowed_origins_may_read_answers():
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-a"}
    with serving(make_app(served(), origins=[ORIGIN])) as client:
        for origin, expected in ((ORIGIN, ORIGIN), ("https://evil.example", None)):
            headers = {"Origin": origin}
            for method, path, more in (("GET", "/health", {}), ("OPTIONS", "/translate", asks)):
                answer = client.open(method, path, headers={**headers, **more})
                assert answer.headers["Access-Control-Allow-Origin"] == expected
        refused = client.open("POST", "/translate", b"", {"Origin": ORIGIN})
        assert refused.headers["Access-Control-Allow-Origin"] == ORIGIN
    with serving(make_app(served())) as client:
        answer = client.open("GET", "/health", headers={"Origin": ORIGIN})
        assert answer.headers["Access-Control-Allow-Origin"] is None


def test_a_request_is_logged_by_the_path_that_the_server_documents(client, caplog):
    caplog.set_level("INFO")
    for path in ("/download_file/Geheim.txt", "/v2/glossaries/Geheim/entries", "/Geheim"):
        client.ask("GET", path)
    text = client.ask("GET", "/metrics")[1] + caplog.text
    for path in ("/download_file/{name}", "/v2/glossaries/{id}/entries", "unknown path"):
        assert f"127.0.0.1 GET {path} 404" in text
        assert f'{{path="{path}",status="404"}}' in text
    assert "Geheim" not in text


def test_every_metric_has_help_and_type(client):
    text = client.ask("GET", "/metrics")[1]
    described = re.findall(r"^# HELP (\w+) .+\n# TYPE \1 (?:counter|gauge|summary)$", text, re.M)
    values = re.findall(r"^(\w+)[{ ]", text, re.M)
    assert described
    assert {re.sub("(?<=seconds)_(sum|count)$", "", name) for name in values} <= set(described)


def test_openapi_describes_every_path_with_its_parameters(client):
    document = json.loads(client.ask("GET", "/openapi.json")[1])
    assert document["openapi"].startswith("3.")
    body = document["paths"]["/translate"]["post"]["requestBody"]["content"]
    schema = body["application/json"]["schema"]
    assert schema["required"] == ["q", "target"]
    assert "text" in str(document["paths"]["/v2/translate"]["post"]["requestBody"])
    assert "entries" in str(document["paths"]["/v2/glossaries"]["post"]["requestBody"])
    addresses = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            addresses.append(f"{method.upper()} {path}")
            in_path = [each["name"] for each in operation["parameters"]]
            assert in_path == re.findall(r"\{(\w+)\}", path)
    assert sorted(addresses) == STABLE["addresses"]


def test_a_wrong_method_names_the_methods_of_its_path(client):
    answer = client.open("GET", "/translate")
    assert answer.status == 405
    assert answer.getheader("Allow") == "POST"
