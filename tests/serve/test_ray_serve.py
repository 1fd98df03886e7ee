"""The same application on Ray Serve."""

import json
import subprocess
import sys
import urllib.request

import pytest
from pydantic import ValidationError

from recbole_leaprec.serve.ray_serve import DeploymentSettings
from recbole_leaprec.serve.service import open_service

# A process of its own: Ray Serve leaves threads and signal handlers behind.
PROGRAM = """
import json, sys, urllib.request
import ray
from ray import serve
from ray.serve._private.api import call_user_app_builder_with_args_if_necessary
from recbole_leaprec.cluster import connected
from recbole_leaprec.serve import deployment

checkpoint, port = sys.argv[1], int(sys.argv[2])
with connected():
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    application = call_user_app_builder_with_args_if_necessary(deployment, {"checkpoint": checkpoint, "replicas": "2", "k": "4"})
    serve.run(application, name="leaprec", route_prefix="/")
    print("ready", flush=True)
    sys.stdin.readline()
    replicas = serve.status().applications["leaprec"].deployments["leaprec"].replica_states
    print(json.dumps({str(state): count for state, count in replicas.items()}), flush=True)
    serve.shutdown()
"""


@pytest.mark.ray
@pytest.mark.slow
def test_two_replicas_answer_as_one_process_does(checkpoint, tmp_path):
    import socket

    from recbole_leaprec.serve.bodies import RecommendBody

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(checkpoint), str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert line == "ready\n", process.stderr.read()[-3000:]
        service = open_service(checkpoint, k=4)
        for n in range(40):
            history = [f"i{n}", f"i{(7 * n) % 40}"]
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/recommend",
                json.dumps({"history": history}).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                given = json.load(answer)
            expected = service.answer([service.recommend_wish(RecommendBody(history=history))])[0]
            assert [one["item"] for one in given["items"]] == [one.item for one in expected.items]
            assert given["skl"] == pytest.approx(expected.skl)
        out, errors = process.communicate("\n", timeout=120)
        assert "2" in out, errors
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def test_settings_are_checked():
    assert DeploymentSettings(checkpoint="x", replicas="3").replicas == 3
    for bad in ({}, {"checkpoint": "x", "replica": 2}, {"checkpoint": "x", "replicas": 0}):
        with pytest.raises(ValidationError):
            DeploymentSettings(**bad)
