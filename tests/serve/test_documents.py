"""Documents of clients, through a public client of LibreTranslate."""

import io
import json
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import deepl
import pytest
from libretranslate_aio import LibreTranslate

from seq2seq_attn import load, translate_document
from seq2seq_attn.serve import batcher, downloads
from seq2seq_attn.text.documents.forms import FORMS, WITH_FIELDS
from tests.documents import markup_samples, samples
from tests.serve.serving import PAIR, TEXT, make_app, served, serving
from tests.waiting import wait_for

CUE = f"1\n00:00:01,000 --> 00:00:02,500\n{TEXT}\n"


def upload(client, content, name="film.srt", languages=("de", "en"), **options):
    """The URL that the public client gets for a document."""
    file = io.BytesIO(content)
    file.name = name
    with LibreTranslate(client.url, **options) as api:
        return api.translate_file(file, *languages).translated_file_url


def fetch(client, url):
    """Status and body of a translated document."""
    answer = client.open("GET", url.removeprefix(client.url))
    return answer.status, answer.content


def ask(client, content, name="film.srt", path="/translate_file", **values):
    """Status and text of the answer to a document."""
    values = {"source": "de", "target": "en", **values}
    parts = [f'name="{key}"\r\n\r\n{value}' for key, value in values.items()]
    parts.append(f'name="file"; filename="{name}"\r\n\r\n{content}')
    head = "--x\r\nContent-Disposition: form-data; "
    body = "\r\n".join(head + part for part in parts) + "\r\n--x--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    return client.ask("POST", path, body.encode(), headers)


def sample(form):
    """A generated document, if there are such for this form."""
    name = f"make_{form}"
    make = getattr(samples, name, None) or getattr(markup_samples, name, None)
    return make(random.Random(1)) if make else None


@pytest.mark.parametrize("form", [form for form in FORMS if form not in WITH_FIELDS])
def test_a_document_is_translated_as_by_translate(client, runs, form):
    content = sample(form) or pytest.skip("generated under another suffix")
    url = upload(client, content, f"a.b.{form.upper()}")
    assert url.endswith(f".{form}")
    assert fetch(client, url) == (200, translate_document(load(runs[0], "cpu"), content, form)[0])


@pytest.mark.parametrize("form", WITH_FIELDS)
def test_a_field_is_named_beside_its_document(client, runs, form):
    content = json.dumps({"de": TEXT}) if "json" in form else f"de\n{TEXT}\n"
    url = json.loads(ask(client, content, f"a.{form}", field="de")[1])["translatedFileUrl"]
    translated = translate_document(load(runs[0], "cpu"), content.encode(), form, field="de")[0]
    assert fetch(client, url) == (200, translated)


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("xlf", "<xliff><file source-language='de-AT'>%s</file></xliff>"),
        ("xliff", "<xliff srcLang='de'>%s</xliff>"),
        ("tmx", "<tmx><header srclang='DE'/><tuv lang='de'><seg>Hund</seg></tuv>%s</tmx>"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_names_its_source_language(client, form, content, encoding):
    document = (content % "<source>Hund</source>").encode(encoding)
    explicit = fetch(client, upload(client, document, f"a.{form}"))
    assert fetch(client, upload(client, document, f"a.{form}", ("auto", "en"))) == explicit


@pytest.mark.parametrize(
    "content", ["<xliff/>", "<xliff srcLang='fr'><source>Hund</source></xliff>"]
)
def test_a_document_without_a_source_language_of_the_server_is_refused(client, content):
    status, text = ask(client, content, "a.xlf", source="auto")
    assert status == 400
    assert "source" in text


def test_a_translated_document_is_a_download(client):
    """So that HTML of a client does not run as a page of the server."""
    url = upload(client, CUE.encode())
    answer = client.open("GET", url.removeprefix(client.url))
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["Content-Type"] == "application/octet-stream"


def test_settings_name_the_suffixes_of_documents(client):
    with LibreTranslate(client.url) as api:
        settings = api.frontend_settings()
    assert settings.supported_files_format == [f".{form}" for form in FORMS]
    assert settings.language.source.code == "de"


@pytest.mark.parametrize(
    ("content", "options", "status", "named"),
    [
        (CUE, {"name": "film"}, 400, "srt"),
        (CUE, {"name": "film.docx"}, 400, "docx"),
        (CUE, {"field": "de"}, 400, "field"),
        (CUE, {"target": "fr"}, 400, "de to en"),
        ("a\0", {}, 400, "NUL"),
        ('{"de": ' + "[" * 100_000, {"name": "a.jsonl", "field": "de"}, 400, "jsonl"),
        (CUE * 20_000, {}, 413, ""),
    ],
)
def test_a_document_that_cannot_be_translated_is_refused(client, content, options, status, named):
    answered, text = ask(client, content, **options)
    assert answered == status
    assert named in text


@pytest.mark.usefixtures("app")
def test_a_document_needs_the_key():
    with serving(make_app(served(("de", "en")), key="secret")) as client:
        assert ask(client, CUE)[0] == 403
        url = upload(client, CUE.encode(), api_key="secret")
        assert fetch(client, url)[0] == 200


def test_the_client_of_deepl_translates_a_document(client, runs):
    api = deepl.DeepLClient("any", server_url=client.url)
    options = {"filename": "film.srt", "target_lang": "EN-GB"}
    result = io.BytesIO()
    api.translate_document(CUE.encode(), result, **options)
    assert result.getvalue() == translate_document(load(runs[0], "cpu"), CUE.encode(), "srt")[0]
    handle = api.translate_document_upload(CUE.encode(), **options)
    other = deepl.DocumentHandle(handle.document_id, "wrong")
    with pytest.raises(deepl.DeepLException, match="Not found"):
        api.translate_document_get_status(other)
    api.translate_document_download(handle, io.BytesIO())
    with pytest.raises(deepl.DeepLException, match="Not found"):
        api.translate_document_download(handle)


@pytest.mark.parametrize(
    ("content", "options", "named"),
    [
        ("{}", {}, "time"),
        (CUE, {"extra_body_parameters": {"glossary_id": "x"}}, "glossary_id"),
        (CUE, {"output_format": "pdf"}, "output_format"),
    ],
)
def test_the_client_of_deepl_learns_why_a_document_is_refused(client, content, options, named):
    api = deepl.DeepLClient("any", server_url=client.url)
    options = {"filename": "film.srt", "target_lang": "EN-GB", **options}
    with pytest.raises(deepl.DeepLException, match=named):
        api.translate_document(content.encode(), io.BytesIO(), **options)


def test_the_status_of_a_document_is_that_of_its_translation(slow, monkeypatch):
    monkeypatch.setattr(downloads, "WAIT_S", 0.1)
    with serving(make_app(served(PAIR))) as client:
        api = deepl.DeepLClient("any", server_url=client.url)
        lost = f"{CUE}\n0:1 --> 0:2\n{{b {{c}}}}\n"
        languages = dict(zip(("source_lang", "target_lang"), PAIR, strict=True))
        handle = api.translate_document_upload(lost, filename="a.srt", **languages)
        assert not api.translate_document_get_status(handle).done
        slow.release.release(9)
        wait_for(lambda: api.translate_document_get_status(handle).done)
        body = {"document_key": handle.document_key}
        answer = client.ask("POST", f"/v2/document/{handle.document_id}", body)[1]
        assert json.loads(answer)["untranslated"][0].startswith("line 6")


@pytest.mark.usefixtures("app")
def test_documents_are_kept_for_a_while(monkeypatch):
    monkeypatch.setattr(downloads, "KEEP_S", 0.5)
    app = make_app(served(("de", "en")))
    with serving(app) as client:
        url = upload(client, CUE.encode())
        assert fetch(client, url)[0] == 200
        wait_for(lambda: fetch(client, url)[0] == 404)
    assert app._downloads._kept == {}


@pytest.mark.usefixtures("app")
def test_the_number_of_kept_documents_is_limited(monkeypatch):
    monkeypatch.setattr(downloads, "MAX_KEPT", 1)
    with serving(make_app(served(("de", "en")))) as client:
        upload(client, CUE.encode())
        assert ask(client, CUE)[0] == 429
        languages = {"source_lang": "de", "target_lang": "en"}
        assert ask(client, CUE, path="/v2/document", **languages)[0] == 429


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("is_asked", [True, False])
def test_a_document_that_failed_frees_its_place(monkeypatch, is_asked):
    monkeypatch.setattr(downloads, "KEEP_FAILED_S", 60 if is_asked else 0.1)
    app = make_app(served(("de", "en")))
    languages = {"source_lang": "de", "target_lang": "en"}
    with serving(app) as client:
        sent = json.loads(ask(client, "{}", path="/v2/document", **languages)[1])
        if is_asked:
            body = {"document_key": sent["document_key"]}
            path = f"/v2/document/{sent['document_id']}"
            assert client.ask("POST", path, body)[0] == 400
            assert app._downloads._kept == {}
        wait_for(lambda: app._downloads._kept == {})


def test_other_requests_do_not_wait_for_the_whole_document(slow, monkeypatch):
    monkeypatch.setattr(batcher, "MAX_LINES", 2)
    cues = "".join(f"0:{number} --> 0:{number}\nwort {number}\n\n" for number in range(9))
    languages = dict(zip(("source", "target"), PAIR, strict=True))
    app = make_app(served(PAIR))
    with serving(app) as client:
        with ThreadPoolExecutor(2) as pool:
            document = pool.submit(partial(ask, client, cues, **languages))
            wait_for(lambda: slow.batches)
            other = pool.submit(client.translate, q="a", **languages)
            wait_for(lambda: any(line.text == "a" for line in app.batcher.waiting))
            slow.release.release(2)
            assert other.result(60) == "A"
            assert not document.done()
            slow.release.release(9)
            assert document.result(60)[0] == 200
