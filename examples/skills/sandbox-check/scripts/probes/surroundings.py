"""What is around: network, processes, environment, descriptors, standard input."""

import os
import select
import shutil
import socket

# The last one only tells Python to leave no compiled files behind.
EXPECTED_VARIABLES = {"PATH", "HOME", "LANG", "TMPDIR", "PYTHONDONTWRITEBYTECODE"}
# More than our own processes and an init would be somebody else's.
OWN_PROCESSES = 8


def read(path):
    try:
        with open(path, "rb") as source:
            return source.read(65536)
    except OSError:
        return None


def interfaces():
    try:
        return sorted(name for _, name in socket.if_nameindex())
    except OSError:
        return None


def routes():
    """Destinations of the IPv4 routing table, None when it cannot be read."""
    table = read("/proc/self/net/route")
    if table is None:
        return None
    return [line.split()[1] for line in table.decode("ascii", "replace").splitlines()[1:] if len(line.split()) > 1]


def processes():
    try:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return []


def variables():
    """Names of the variables that the process was started with; the interpreter may add its own later."""
    block = read("/proc/self/environ")
    if block is None:
        return sorted(os.environ)
    return sorted(item.split(b"=", 1)[0].decode("utf-8", "replace") for item in block.split(b"\0") if item)


def checks(inherited):
    names, table = interfaces(), routes()
    if names is None:
        yield "no_network", None, "interfaces cannot be listed"
    else:
        others = [name for name in names if name != "lo"]
        yield "no_network", not others and not table, f"interfaces: {', '.join(names) or 'none'}; {len(table or [])} routes"

    seen = processes()
    if not seen:
        yield "own_processes_only", None, "/proc is not there"
    else:
        yield "own_processes_only", len(seen) <= OWN_PROCESSES, f"{len(seen)} processes visible"
    first = read("/proc/1/environ")
    secret = bool(first) and os.getpid() != 1
    yield "init_hides_environment", not secret, "the environment of process 1 is readable" if secret else "not readable or empty"

    extra = [name for name in variables() if name not in EXPECTED_VARIABLES and not name.startswith("SKILL_")]
    yield "clean_environment", not extra, f"unexpected variables: {', '.join(extra) or 'none'}"
    # The listing itself takes one descriptor.
    more = [number for number in inherited if number > 3]
    yield "no_inherited_descriptors", not more, f"descriptors: {', '.join(map(str, inherited)) or 'unknown'}"
    ready, _, _ = select.select([0], [], [], 0)
    yield "stdin_ends", bool(ready) and not os.isatty(0), "standard input is at its end" if ready else "standard input stays open"


def facts(inherited):
    return {
        "interfaces": interfaces() or [],
        "routes": len(routes() or []),
        "processes_visible": len(processes()),
        "environment": variables(),
        "descriptors": inherited,
        "interpreters": {name: shutil.which(name) for name in ("python3", "bash", "sh", "node", "perl", "ruby") if shutil.which(name)},
    }
