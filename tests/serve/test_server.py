"""The service as a process of its own: started, asked, killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

import pytest

from recbole_leaprec.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def start(checkpoint):
    """Start a service with these options; returns the process and its address."""
    started = []

    def begin(*words, **environment):
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "run_leaprec.py"), "serve", f"--checkpoint={checkpoint}", "--port=0", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment},
        )  # fmt: skip
        started.append(process)
        line = process.stdout.readline()
        assert "on http://127.0.0.1:" in line, process.stderr.read()
        return process, line.partition(" on ")[2].partition(",")[0]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def ask(address, path="/recommend", body=None, **headers):
    data = None if path in ("/health", "/model") else json.dumps(body or {"history": ["i1", "i2"]}).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def items(answer):
    return [one["item"] for one in answer["items"]]


@pytest.mark.slow
def test_a_service_answers_asks_for_its_token_and_ends_with_ctrl_c(start):
    process, address = start("--k=3", "--reranker=setwise", LEAPREC_TOKEN="secret")
    assert ask(address, "/health") == {"status": "ok"}
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        ask(address)
    refused.value.close()
    assert len(ask(address, Authorization="Bearer secret")["items"]) == 3
    assert ask(address, "/model", Authorization="Bearer secret")["reranker"] == "setwise"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert out.endswith("ended\n")
    assert not errors
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_killing_it_under_load_loses_no_more_than_the_requests_in_flight(start, how):
    process, address = start()
    expected, clients = ask(address), 8
    answered, failed = [], []

    def load():
        try:
            while True:
                answered.append(ask(address))
        except (OSError, HTTPException) as error:  # a connection that is refused or broken, or an answer that is cut
            failed.append(error)

    threads = [threading.Thread(target=load) for _ in range(clients)]
    for thread in threads:
        thread.start()
    while len(answered) < 50:
        time.sleep(0.01)
    process.send_signal(how)
    for thread in threads:
        thread.join(timeout=60)
    assert len(failed) == clients  # each client's last request, and no other
    assert all(items(answer) == items(expected) for answer in answered)
    _, again = start()
    assert ask(again) == expected


def test_a_port_that_is_taken_is_told(checkpoint, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", f"--checkpoint={checkpoint}", f"--port={port}"]) == 2
    assert f"cannot listen on 127.0.0.1:{port} (--host, --port)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--checkpoint=nothing.pth", "--port=0"], "checkpoint nothing.pth does not exist"),
        (["--port=0"], "--checkpoint=FILE is needed"),
        (["--checkpoint=x", "--port=99999"], "port must be from 0 to 65535, got 99999"),
        (["--checkpoint=x", "--host=no.such.host.invalid"], "cannot listen on no.such.host.invalid:8000"),
        (["--checkpoint=x", "--target_skl=0.1"], "target_skl"),
        (["--checkpoint=x", "--max_seconds=0"], "max_seconds must be"),
        (["--checkpoint=x", "--threads=None"], "threads must be a whole number, 1 or more, got None"),
        (["--checkpoint=x", "--k=20", "--max_k=5"], "k must be at most max_k, 5"),
    ],
)
def test_bad_options_are_told(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x").touch()
    assert main(["serve", *words]) == 2
    assert message in capsys.readouterr().err


def test_what_must_be_installed_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("x").touch()
    monkeypatch.setattr("recbole_leaprec.commands.serve.find_spec", lambda name: None if name == "uvicorn" else object())
    assert main(["serve", "--checkpoint=x"]) == 2
    assert "serve needs uvicorn: pip install 'recbole-leaprec[serve]'" in capsys.readouterr().err
