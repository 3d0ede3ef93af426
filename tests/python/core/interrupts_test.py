"""Ctrl-C while the main thread waits in C, in processes of their own."""

import os
import signal
import subprocess
import sys
import time

import pytest
from core_ranks import DEADLINE_S

HEAD = """
import array, signal, sys, threading, time
import tutti
ones = array.array("f", [1.0] * 10)
def report(*words):
    print(*words, flush=True)
"""
IN_PROCESS = HEAD + """
ranks = tutti.Communicator.in_process(2, backend="host", timeout=60)
"""
WAITS = {
    # What the main thread waits in, and what is reported afterwards.
    "collective": IN_PROCESS + """
report("ready")
try:
    ranks[0].all_reduce(ones)
except KeyboardInterrupt:
    report("interrupted", type(ranks[0].failure).__name__, "SIGINT" in ranks[0].failure.text)
""",
    "allocation": IN_PROCESS + """
report("ready")
try:
    tutti.empty(10, "int8", ranks[0])
except KeyboardInterrupt:
    report("interrupted", type(ranks[0].failure).__name__, "SIGINT" in ranks[0].failure.text)
""",
    "group": IN_PROCESS + """
report("ready")
try:
    with tutti.group():
        ranks[0].send(ones, 1)
        ranks[0].send(array.array("f", [0.0]) * 1_000_000, 1)
except KeyboardInterrupt:
    report("interrupted", type(ranks[0].failure).__name__, "SIGINT" in ranks[0].failure.text)
""",
}
CREATION = HEAD + """
report("ready")
try:
    tutti.Communicator(tutti.UniqueId.create(), 0, 2, backend="host", timeout=60)
except KeyboardInterrupt:
    report("interrupted")
"""
OWN_HANDLER = HEAD + """
ranks = tutti.Communicator.in_process(2, backend="host", timeout=60)
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append("own"))
threading.Timer(1.0, lambda: ranks[1].all_reduce(ones)).start()
report("ready")
report("result", ranks[0].all_reduce(ones)[0], *seen)
"""
BUSY = HEAD + """
ranks = tutti.Communicator.in_process(1, backend="host", timeout=60)
report("ready")
try:
    while True:
        ranks[0].all_reduce(ones)
except KeyboardInterrupt:
    time.sleep(0.5)
    report("interrupted", ranks[0].failure)
"""
LATER = HEAD + """
import os
ranks = tutti.Communicator.in_process(2, backend="host", timeout=60)
def other():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)
    ranks[1].all_reduce(ones)
    time.sleep(1)
    report("result", ranks[1].all_reduce(ones)[0])
threading.Thread(target=other).start()
report("ready")
try:
    ranks[0].all_reduce(ones)
except KeyboardInterrupt:
    ranks[0].all_reduce(ones)
"""
FORKED = HEAD + """
import os
ranks = tutti.Communicator.in_process(2, backend="host", timeout=60)
child = os.fork()
if child == 0:
    try:
        time.sleep(0.4)  # until the parent waits
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    except KeyboardInterrupt:
        os._exit(0)
threading.Timer(1.0, lambda: ranks[1].all_reduce(ones)).start()
report("ready")
report("result", ranks[0].all_reduce(ones)[0])
"""


# A shell starts what it runs in the background with SIGINT ignored, and Python leaves it so.
TAKES_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def said_after_sigint(program: str, interrupt: bool = True) -> tuple[str, float]:
    """The line that the program says after `ready`, and the seconds that this took."""
    environment = os.environ | {"PYTHONWARNINGS": "ignore::ResourceWarning"}
    with subprocess.Popen([sys.executable, "-B", "-c", TAKES_SIGINT + program], stdout=subprocess.PIPE, text=True,
                          env=environment) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)  # until it is in the wait
            started = time.monotonic()
            if interrupt:
                process.send_signal(signal.SIGINT)
            said = process.stdout.readline().strip()
            seconds = time.monotonic() - started
            assert process.wait(DEADLINE_S) == 0
        finally:
            process.kill()
    return said, seconds


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_ends(wait: str) -> None:
    said, seconds = said_after_sigint(WAITS[wait])
    assert said == "interrupted AbortedError True"
    assert seconds < 5


def test_creation_ends() -> None:
    said, seconds = said_after_sigint(CREATION)
    assert said == "interrupted"
    assert seconds < 5


def test_a_handler_of_the_program_aborts_nothing() -> None:
    assert said_after_sigint(OWN_HANDLER)[0] == "result 2.0 own"


def test_calls_that_do_not_wait_abort_nothing() -> None:
    assert said_after_sigint(BUSY)[0] == "interrupted None"


def test_a_call_after_the_interruption_is_not_aborted() -> None:
    assert said_after_sigint(LATER, interrupt=False)[0] == "result 2.0"


def test_a_signal_of_a_forked_child_is_the_childs() -> None:
    assert said_after_sigint(FORKED, interrupt=False)[0] == "result 2.0"
