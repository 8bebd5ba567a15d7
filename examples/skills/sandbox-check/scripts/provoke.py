#!/usr/bin/env python3
"""Runs into one limit on purpose, to show that it holds: {"limit": NAME} as JSON on standard input.

Every attempt gives up by itself well before it could hurt a host without limits.
"""

import json
import os
import signal
import sys
import time

MEBIBYTE = 1 << 20
MOST_MEMORY = 512 * MEBIBYTE
MOST_DISK = 256 * MEBIBYTE
MOST_PROCESSES = 512
MOST_SECONDS = 30


def memory():
    """Fills memory. Expect the status resource_exhausted."""
    blocks = []
    while len(blocks) * 4 * MEBIBYTE < MOST_MEMORY:
        blocks.append(b"x" * (4 * MEBIBYTE))
    return {"held": False, "bytes": len(blocks) * 4 * MEBIBYTE}


def wall_time():
    """Waits. Expect the status timeout."""
    time.sleep(MOST_SECONDS)
    return {"held": False, "seconds": MOST_SECONDS}


def processor_time():
    """Computes. Expect the status timeout."""
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        sum(range(100_000))
    return {"held": False, "seconds": MOST_SECONDS}


def output():
    """Writes 4 MiB. Expect success, stdout_truncated, and the number of all bytes in stdout_bytes."""
    for _ in range(64):
        sys.stdout.write("x" * 65535 + "\n")
    return {"bytes": 4 * MEBIBYTE}


def disk():
    """Fills the folder for temporary files. Expect held: true."""
    written = 0
    try:
        with open(os.path.join(os.environ.get("TMPDIR", "/tmp"), "fill"), "wb", buffering=0) as out:
            while written < MOST_DISK:
                written += out.write(b"x" * MEBIBYTE)
    except OSError as error:
        return {"held": True, "bytes": written, "error": error.strerror}
    return {"held": False, "bytes": written}


def processes():
    """Starts processes that wait. Expect held: true."""
    children = []
    try:
        while len(children) < MOST_PROCESSES:
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
        answer = {"held": False}
    except OSError as error:
        answer = {"held": True, "error": error.strerror}
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    return {**answer, "processes": len(children)}


def exit_code():
    """Ends with exit code 7. Expect the status error."""
    print("sandbox-check: this script ends with exit code 7, as asked", file=sys.stderr)
    return {"code": 7}


ATTEMPTS = {
    "memory": memory,
    "wall_time": wall_time,
    "processor_time": processor_time,
    "output": output,
    "disk": disk,
    "processes": processes,
    "exit_code": exit_code,
}


def main():
    name = json.load(sys.stdin)["limit"]
    answer = {"limit": name, **ATTEMPTS[name]()}
    path = os.environ.get("SKILL_OUTPUT")
    if path:
        with open(path, "w", encoding="utf-8") as out:
            json.dump(answer, out)
    return answer.get("code", 0)


if __name__ == "__main__":
    sys.exit(main())
