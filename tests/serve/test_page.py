"""The page at `/`."""

import pytest

from tests.serve.serving import make_app, serving


@pytest.mark.slow
def test_the_page_has_both_runs_or_says_why_not(runs, tmp_path):
    with serving(make_app({}, [str(run) for run in runs[:1]])) as client:
        first, again = client.ask("GET", "/"), client.ask("GET", "/")
        assert first == again
        assert first[0] == 200
        assert "default-src 'none'" in first[1]
    with serving(make_app({}, [str(tmp_path / "none")])) as client:
        status, text = client.ask("GET", "/")
        assert status == 404
        assert "none" in text
