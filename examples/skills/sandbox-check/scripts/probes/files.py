"""Files: what is readable that should not be, what is writable."""

import os
import stat
import tempfile

SYSTEM = ["/", "/bin", "/boot", "/dev", "/etc", "/lib", "/opt", "/proc", "/root", "/sbin", "/srv", "/sys", "/usr", "/usr/lib", "/var"]
PRIVATE = [
    "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root", "/home", "/var/lib/sallyport", "/var/log", "/run/docker.sock",
    "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/secrets",
]
KERNEL = [
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
    "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/uevent_helper",
]
KERNEL_SECRETS = ["/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg"]
HARMLESS_DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}


def can_create(folder):
    """Can a file be made there? It is removed again."""
    try:
        handle, path = tempfile.mkstemp(dir=folder, prefix=".sandbox-check-")
    except OSError:
        return False
    os.close(handle)
    os.unlink(path)
    return True


def can_open(path, flags):
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    os.close(handle)
    return True


def private_in_reach():
    """Private places whose content we could read: a file that opens, a folder with something in it, a socket."""
    found = []
    for path in PRIVATE:
        try:
            info = os.stat(path)
            if stat.S_ISDIR(info.st_mode):
                # The home that the run itself was given may lie there too.
                own = os.path.relpath(os.environ.get("HOME", "/"), path).split("/")[0]
                reachable = any(name != own for name in os.listdir(path))
            elif stat.S_ISSOCK(info.st_mode):
                reachable = os.access(path, os.W_OK)
            else:
                reachable = can_open(path, os.O_RDONLY)
        except OSError:
            continue
        if reachable:
            found.append(path)
    return found


def devices():
    """Device nodes below /dev that can do more than the usual ones."""
    found = []
    for folder, names, leaves in os.walk("/dev"):
        names[:] = [name for name in names if name not in ("pts", "fd", "shm")]
        for leaf in leaves:
            path = os.path.join(folder, leaf)
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and leaf not in HARMLESS_DEVICES:
                found.append(path)
    return sorted(found)[:20]


def checks():
    writable = [folder for folder in SYSTEM if can_create(folder)]
    yield "read_only_system", not writable, f"writable system folders: {', '.join(writable) or 'none'}"
    reach = private_in_reach()
    yield "no_host_files", not reach, f"private places in reach: {', '.join(reach) or 'none'}"
    settings = [path for path in KERNEL if can_open(path, os.O_WRONLY)]
    secrets = [path for path in KERNEL_SECRETS if can_open(path, os.O_RDONLY)]
    yield "no_kernel_settings", not settings + secrets, f"kernel files in reach: {', '.join(settings + secrets) or 'none'}"
    unusual = [path for path in devices() if can_open(path, os.O_RDONLY)]
    yield "few_devices", not unusual, f"unusual devices that open: {', '.join(unusual) or 'none'}"


def facts():
    places = {name: os.environ.get(name) for name in ("HOME", "TMPDIR", "SKILL_ROOT", "SKILL_ARTIFACTS", "SKILL_INPUT")}
    return {
        "working_folder_is_skill_root": os.environ.get("SKILL_ROOT") is not None
        and os.path.realpath(os.environ["SKILL_ROOT"]) == os.path.realpath(os.getcwd()),
        "writable": sorted(name for name, path in places.items() if path and os.path.isdir(path) and can_create(path)),
        "dev_shm_writable": can_create("/dev/shm"),
    }
