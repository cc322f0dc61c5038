"""Manners towards a server of the user's: keys, pauses, rates."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from answering import answering
from running import stalefuzz

from fuzzer.errors import UnreachableError, UsageError
from fuzzer.servers.access import Access, key_in_environment, permit
from fuzzer.servers.http import Connection
from fuzzer.servers.protocol import RequestRefused

KEY = "sk-not-to-be-seen"


def post(url: str) -> bytes:
    with closing(Connection(url)) as connection:
        return connection.post("/x", {})


def test_a_busy_server_is_asked_again() -> None:
    with answering({"/x": {"ok": 1}}) as server:
        permit(server.url, Access(tries=3))
        server.statuses = [503, 429]
        assert post(server.url) == b'{"ok": 1}'
        assert len(server.asked) == 3


def test_it_is_not_asked_for_ever() -> None:
    with answering({"/x": {}}) as server:
        permit(server.url, Access(tries=2))
        server.statuses = [503, 503, 503]
        with pytest.raises(RequestRefused) as refusal:
            post(server.url)
        assert (refusal.value.status, len(server.asked)) == (503, 2)


@pytest.mark.parametrize("status", [400, 404, 500])
def test_any_other_answer_counts(status: int) -> None:
    with answering({"/x": {}}) as server:
        permit(server.url, Access(tries=5))
        server.statuses = [status]
        with pytest.raises(RequestRefused):
            post(server.url)
        assert len(server.asked) == 1


def test_a_key_goes_to_the_server_that_was_named_only() -> None:
    with answering({}) as ours, answering({}) as other:
        permit(ours.url, Access(key=KEY))
        post(ours.url)
        post(other.url)
        assert ours.asked[0][1]["authorization"] == f"Bearer {KEY}"
        assert "authorization" not in other.asked[0][1]
    assert KEY not in repr(Access(key=KEY))


def test_a_rate_is_kept() -> None:
    with answering({}) as server:
        permit(server.url, Access(rate=50))
        begun = time.monotonic()
        for _ in range(6):
            post(server.url)
        assert time.monotonic() - begun >= 5 / 50


def test_a_key_that_no_header_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALEFUZZ_API_KEY", "two\nlines")
    with pytest.raises(UsageError) as error:
        key_in_environment()
    assert "two" not in str(error.value)


def test_no_key_in_any_output(tmp_path: Path) -> None:
    """A server that says the key back does not get it into a report."""
    with answering({"/props": {"default_generation_settings": {}, "said": KEY}}) as server:
        run = stalefuzz("run", "--target", server.url, folder=tmp_path, env={"STALEFUZZ_API_KEY": KEY})
        assert run.status == 3
        assert any(headers.get("authorization") == f"Bearer {KEY}" for _, headers, _ in server.asked)
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert KEY not in run.said
    assert not any(KEY.encode() in content for content in written)


@pytest.mark.parametrize(
    "words", [("--allow-admin",), ("--rate", "5"), ("--max-inflight", "2"), ("--ca-file", "x.pem")]
)
def test_manners_are_for_servers_of_the_user(tmp_path: Path, words: tuple[str, ...]) -> None:
    run = stalefuzz("run", *words, folder=tmp_path)
    assert run.status == 2
    assert words[0] in run.stderr


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for loopback that nobody has signed, its key in a file beside it."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=stalefuzz"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{file}.key", "-out", str(file)]
    made = subprocess.run(["openssl", *words], capture_output=True)
    assert made.returncode == 0, made.stderr
    return file


def test_a_server_is_trusted_through_a_ca_file_only(certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, f"{certificate}.key")
    with answering({"/x": {"ok": 1}}, tls) as server:
        with closing(Connection(server.url)) as stranger, pytest.raises(UnreachableError, match="certificate"):
            stranger.reach()
        permit(server.url, Access(ca_file=certificate))
        assert post(server.url) == b'{"ok": 1}'


def test_a_file_without_certificates(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with pytest.raises(UsageError, match="holds no certificates"):
        permit("https://127.0.0.1:1", Access(ca_file=empty))


def test_a_ca_file_that_is_not_there(tmp_path: Path) -> None:
    run = stalefuzz("run", "--target", "https://127.0.0.1:1", "--ca-file", "no.pem", folder=tmp_path)
    assert run.status == 2
    assert "no.pem" in run.stderr
