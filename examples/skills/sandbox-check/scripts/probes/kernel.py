"""Privileges: who we are and what the kernel lets us do."""

import os
import resource
import signal

CLONE_NEWUSER = 0x10000000
LIMITS = {
    "address_space_bytes": resource.RLIMIT_AS,
    "core_bytes": resource.RLIMIT_CORE,
    "cpu_seconds": resource.RLIMIT_CPU,
    "file_bytes": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
}


def status():
    """The fields of /proc/self/status."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as source:
            return dict(line.rstrip("\n").split(":\t", 1) for line in source if ":\t" in line)
    except OSError:
        return {}


def checks():
    ids = {os.getuid(), os.geteuid(), os.getgid(), os.getegid()}
    yield "not_root", 0 not in ids, f"user {os.geteuid()}, group {os.getegid()}"
    groups = [group for group in os.getgroups() if group != os.getegid()]
    yield "no_extra_groups", not groups, f"supplementary groups: {', '.join(map(str, groups)) or 'none'}"

    fields = status()
    sets = {name: fields.get(name) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    if None in sets.values():
        yield "no_capabilities", None, "the kernel does not say"
    else:
        held = [name for name, bits in sets.items() if int(bits, 16)]
        yield "no_capabilities", not held, "none" if not held else ", ".join(f"{name} {sets[name]}" for name in held)
    flag = fields.get("NoNewPrivs")
    yield "no_new_privs", None if flag is None else flag == "1", f"NoNewPrivs {flag}"
    mode = fields.get("Seccomp")
    yield "seccomp", None if mode is None else mode == "2", {"0": "no filter", "1": "strict mode", "2": "a filter is active"}.get(mode, "the kernel does not say")
    yield ("no_new_namespaces", *new_namespace())
    core = resource.getrlimit(resource.RLIMIT_CORE)
    # With a limit of 0 a handler that the host set up is still started; 1 is the kernel's word for "not even that".
    yield "no_core_dumps", core[1] in (0, 1), f"core limit {core[0]}, at most {core[1]}"


def new_namespace():
    """May we make a user namespace? Tried in a child, which is gone afterwards."""
    try:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError) as error:
        return None, f"cannot be tried: {error}"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(5)
            number = 0 if libc.unshare(CLONE_NEWUSER) == 0 else ctypes.get_errno()
            os.write(writer, str(number).encode())
        finally:
            os._exit(0)
    os.close(writer)
    answer = os.read(reader, 16)
    os.close(reader)
    os.waitpid(child, 0)
    if not answer:
        return True, "the attempt was stopped by the kernel"
    number = int(answer)
    return number != 0, "a new user namespace was allowed" if number == 0 else f"refused: {os.strerror(number)}"


def facts():
    limits = {}
    for name, limit in LIMITS.items():
        soft, hard = resource.getrlimit(limit)
        limits[name] = [None if value == resource.RLIM_INFINITY else value for value in (soft, hard)]
    try:
        processors = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        processors = os.cpu_count()
    uname = os.uname()
    return {
        "uid": os.geteuid(),
        "gid": os.getegid(),
        "limits": limits,
        "processors": processors,
        "kernel": uname.release,
        "machine": uname.machine,
        "host_name": uname.nodename,
    }
