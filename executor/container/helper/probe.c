/*
 * The program of the probe runs that the capability report is made of. It runs where a script would run, under everything a
 * script is under, and needs nothing of an image.
 *
 * It prints one fact per line, "name value"; an attempt's value is 0 or the errno. facts.go judges them.
 */
#include "probe.h"
#include "landlock.h"
#include "sys.h"
#include "usage.h"

#include <asm/statfs.h>
#include <linux/in.h>
#include <linux/time.h>
#include <linux/utsname.h>

static void say(const char *s) { write_all(1, s, str_len(s)); }

static void say_number(long value)
{
	char digits[24];
	int at = sizeof digits - 1, negative = value < 0;
	u64 n = negative ? (u64)-value : (u64)value;
	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	if (negative)
		digits[--at] = '-';
	say(digits + at);
}

static void fact(const char *name, long value)
{
	say(name);
	say(" ");
	say_number(value);
	say("\n");
}

/* attempt prints 0 when something was possible and the errno when it was not. */
static void attempt(const char *name, long answer) { fact(name, answer < 0 ? -answer : 0); }

static void attempt_write(const char *name, const char *path, int flags)
{
	long fd = sys_open(AT_ROOT, path, O_WRONLY | flags, 0600);
	attempt(name, fd);
	if (fd >= 0)
		sys_close((int)fd);
}

/* print_file prints every line of a file after "name ". */
static void print_file(const char *name, const char *path)
{
	static char text[8192];
	long fd = sys_open(AT_ROOT, path, O_RDONLY, 0);
	if (fd < 0)
		return;
	long n = sys_read((int)fd, text, sizeof text - 1);
	sys_close((int)fd);
	for (long from = 0, i = 0; i < n; i++) {
		if (text[i] != '\n')
			continue;
		text[i] = 0;
		say(name);
		say(" ");
		say(text + from);
		say("\n");
		from = i + 1;
	}
}

static void print_link(const char *name, const char *path)
{
	char target[256];
	long n = SYS(readlinkat, AT_ROOT, path, target, sizeof target - 1, 0, 0);
	if (n < 0)
		return;
	target[n] = 0;
	say("namespace ");
	say(name);
	say(" ");
	say(target);
	say("\n");
}

static void print_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (SYS(fcntl, fd, F_GETFD, 0, 0, 0, 0) >= 0)
			fact("descriptor", fd);
}

static void print_size(const char *name, const char *path)
{
	struct statfs st;
	if (SYS(statfs, path, &st, 0, 0, 0, 0) == 0)
		fact(name, (long)st.f_blocks * (long)st.f_bsize);
}

static void try_network(void)
{
	/* 192.0.2.1 is reserved for documentation: nobody may answer, and no packet may leave. */
	struct sockaddr_in to = {.sin_family = 2, .sin_port = 0x0900, .sin_addr = {0x010200c0}};
	long fd = SYS(socket, 2, 2 /* SOCK_DGRAM */, 0, 0, 0, 0);
	attempt("connect", fd < 0 ? fd : SYS(connect, fd, &to, sizeof to, 0, 0, 0));
	attempt("packet_socket", SYS(socket, 17, 3, 0, 0, 0, 0));
	attempt("netlink_socket", SYS(socket, 16, 3, 0, 0, 0, 0));
	attempt("vsock_socket", SYS(socket, 40, 1, 0, 0, 0, 0));
}

static void try_system_calls(void)
{
	char scratch[256] = {0};
	attempt("ptrace", SYS(ptrace, 16 /* PTRACE_ATTACH */, 1, 0, 0, 0, 0));
	attempt("unshare_user", SYS(unshare, CLONE_NEWUSER, 0, 0, 0, 0, 0));
	attempt("unshare_mount", SYS(unshare, CLONE_NEWNS, 0, 0, 0, 0, 0));
	attempt("clone3", SYS(clone3, 0, 0, 0, 0, 0, 0));
	attempt("io_uring", SYS(io_uring_setup, 1, scratch, 0, 0, 0, 0));
	attempt("keyctl", SYS(keyctl, 0, -3, 0, 0, 0, 0));
	attempt("watch_files", SYS(inotify_init1, 0, 0, 0, 0, 0, 0));
	attempt("bpf", SYS(bpf, 0, scratch, sizeof scratch, 0, 0, 0));
	attempt("mount", SYS(mount, "none", "/tmp", "tmpfs", 0, 0, 0));
	attempt("kill_init", sys_kill(1, SIGKILL)); /* allowed, and without effect */
	attempt_write("write_sysctl", "/proc/sys/kernel/hostname", 0);
	/* Our own, so that nothing but Landlock refuses it. */
	attempt_write("write_comm", "/proc/self/comm", 0);
	attempt_write("write_root", "/probe", O_CREAT);
	attempt_write("write_usr", "/usr/probe", O_CREAT);
	attempt_write("write_dev", "/dev/probe", O_CREAT);
	attempt_write("write_skill", PATH_SKILL "/probe", O_CREAT);
	attempt_write("write_tmp", "/tmp/probe", O_CREAT);
}

static void print_facts(void)
{
	struct new_utsname host;
	fact("uid", SYS(getuid, 0, 0, 0, 0, 0, 0));
	fact("landlock", landlock_abi());
	fact("gid", SYS(getgid, 0, 0, 0, 0, 0, 0));
	print_descriptors();
	print_file("status", "/proc/self/status");
	print_file("uid_map", "/proc/self/uid_map");
	print_file("oom_score_adj", "/proc/self/oom_score_adj");
	print_link("user", "/proc/self/ns/user");
	print_link("mnt", "/proc/self/ns/mnt");
	print_link("pid", "/proc/self/ns/pid");
	print_link("net", "/proc/self/ns/net");
	print_link("ipc", "/proc/self/ns/ipc");
	print_link("uts", "/proc/self/ns/uts");
	print_link("cgroup", "/proc/self/ns/cgroup");
	print_size("size_tmp", "/tmp");
	print_size("size_shm", "/dev/shm");
	print_size("size_skill", PATH_SKILL);
	print_size("size_home", PATH_HOME);
	print_size("size_output", PATH_OUTPUT_DIR);
	print_size("size_var_tmp", "/var/tmp");
	print_size("size_run", "/run");
	print_size("size_sys", "/sys");
	fact("cpu_counter", used_cpu() > 0);
	print_file("cpu_max", "/sys/fs/cgroup/cpu.max");
	print_file("cpu_quota", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
	print_file("cpu_quota", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us");
	print_file("cpu_period", "/sys/fs/cgroup/cpu/cpu.cfs_period_us");
	print_file("cpu_period", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us");
	long environment = sys_open(AT_ROOT, "/proc/1/environ", O_RDONLY, 0);
	attempt("init_environment", environment);
	if (SYS(uname, &host, 0, 0, 0, 0, 0) == 0) {
		say("hostname ");
		say(host.nodename);
		say("\n");
	}
	try_network();
	try_system_calls();
}

/* eat takes memory until it is killed. */
static void eat(void)
{
	for (;;) {
		long p = SYS(mmap, 0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p < 0 && p > -4096)
			sys_exit(1);
		for (int i = 0; i < 1 << 20; i += 4096)
			((volatile char *)p)[i] = 1;
	}
}

/* fork_all makes sleeping children until it may not, and prints how many. */
static void fork_all(void)
{
	long n = 0, pid;
	while ((pid = sys_fork()) > 0)
		n++;
	if (pid == 0)
		for (;;)
			SYS(ppoll, 0, 0, 0, 0, 0, 0);
	fact("forked", n);
	fact("errno", -pid);
}

/* spin uses a processor for as long as the clock says (milliseconds), and prints how many microseconds of it were given. */
static void spin(long wall)
{
	struct __kernel_timespec begin, now;
	struct rusage usage;
	SYS(clock_gettime, CLOCK_MONOTONIC, &begin, 0, 0, 0, 0);
	do
		SYS(clock_gettime, CLOCK_MONOTONIC, &now, 0, 0, 0, 0);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < wall);
	SYS(getrusage, RUSAGE_SELF, &usage, 0, 0, 0, 0);
	fact("spun", (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* try_limits meets each limit, one after the other. */
static void try_limits(void)
{
	int status = 0;
	spin(300);
	long pid = sys_fork();
	if (pid == 0)
		eat();
	if (pid > 0)
		sys_wait((int)pid, &status, 0);
	fact("eaten", status & 0x7f);
	fork_all();
}

void run_probe(int argc, char **argv)
{
	struct statx st;
	/* Outside of a sandbox the attempts below could succeed. */
	if (sys_statx(AT_ROOT, PATH_INIT, AT_SYMLINK_NOFOLLOW, &st) || SYS(getppid, 0, 0, 0, 0, 0, 0) != 1)
		sys_exit(1);
	switch (argc > 1 ? argv[1][0] : 0) {
	case 'f':
		print_facts();
		break;
	case 'l': /* limits */
		try_limits();
		break;
	default:
		break;
	}
}
