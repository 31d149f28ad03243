"""A worker that needs nothing but Python: python3 worker.py [tag]. It takes the tag's tasks from the service, one by one."""
import json
import os
import signal
import sys
import threading
from urllib.request import Request, urlopen

BASE = os.environ.get("DELAYTASK_URL", "http://127.0.0.1:8080")
TAG = sys.argv[1] if len(sys.argv) > 1 else "greet"
TTR = int(os.environ.get("TTR", "15"))  # seconds: so long after this process has died, another one gets its task
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("DELAYTASK_TOKEN", "")}
stopping, polling = threading.Event(), True


def call(path, body):
    with urlopen(Request(BASE + path, json.dumps(body).encode(), HEADERS, method="POST"), timeout=60) as answer:
        return json.loads(answer.read() or "{}")  # 204 has no body


def process(body):  # your work; an exception fails the attempt, and the task is tried again
    if "fail" in body:
        raise RuntimeError(body["fail"])
    threading.Event().wait(body.get("seconds", 0))
    print("hello", body.get("name"), flush=True)


def run(task):
    path, token, over = f"/v1/tasks/{task['id']}/", {"token": task["token"]}, threading.Event()

    def keep():  # renews the lease while the work goes on
        while not over.wait(TTR / 3):
            call(path + "touch", {**token, "ttr": f"{TTR}s"})
    threading.Thread(target=keep, daemon=True).start()
    try:
        process(task["body"])
        end, answer = "finish", token
    except Exception as error:
        end, answer = "fail", {**token, "error": str(error) or repr(error)}
    over.set()
    call(path + end, answer)


def stop(*_):  # a task that runs is finished first
    stopping.set()
    if polling:
        sys.exit(0)


for number in signal.SIGTERM, signal.SIGINT:
    signal.signal(number, stop)
while not stopping.is_set():
    try:
        tasks, polling = call(f"/v1/pop?tag={TAG}&wait=30s&ttr={TTR}s", {}).get("tasks", []), False
        for task in tasks:
            run(task)
    except OSError as error:  # no answer, or a refusal such as 409: the lease was lost
        print(error, file=sys.stderr)
        stopping.wait(1)
    polling = True
