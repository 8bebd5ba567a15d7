/*
 * PID 1 of a sandbox: reads one configuration, stages the revision, starts the script, outlives it, kills whatever it
 * left, and tells the supervisor what happened and what it made.
 *
 * Nothing here reads a byte that a tenant wrote as anything but a byte: the configuration comes from the supervisor with
 * lengths, and what the script leaves is only measured and passed on. As PID 1 of its namespace it takes no signal from
 * inside, not even SIGKILL, and its end is the end of every process in there.
 */
#include "child.h"
#include "files.h"
#include "identity.h"
#include "probe.h"
#include "sys.h"

long write_all(int fd, const void *data, u64 n)
{
	const char *p = data;
	while (n) {
		long written = sys_write(fd, p, n);
		if (written == -EINTR)
			continue;
		if (written < 0)
			return written;
		p += written;
		n -= (u64)written;
	}
	return 0;
}

long read_all(int fd, void *data, u64 n)
{
	char *p = data;
	while (n) {
		long got = sys_read(fd, p, n);
		if (got == -EINTR)
			continue;
		if (got < 0)
			return got;
		if (got == 0)
			return -EPIPE;
		p += got;
		n -= (u64)got;
	}
	return 0;
}

/* The compiler may call these for plain assignments. */
void *memset(void *to, int value, unsigned long n)
{
	volatile u8 *p = to;
	while (n--)
		*p++ = (u8)value;
	return to;
}

void *memcpy(void *to, const void *from, unsigned long n)
{
	volatile u8 *p = to;
	const u8 *q = from;
	while (n--)
		*p++ = *q++;
	return to;
}

/* start_failed ends PID 1: nothing of the script ran. */
static void start_failed(u32 stage, long err)
{
	send_frame(FRAME_START_FAILED, stage, (u64)-err, 0, 0);
	sys_exit(1);
}

static struct config_header config;

/* point fills a NULL-terminated vector with the NUL-terminated strings of a blob; false when the counts disagree. */
static int point(char **vector, u32 count, char *blob, u32 len)
{
	u32 at = 0;
	for (u32 i = 0; i < count; i++) {
		if (at >= len)
			return 0;
		vector[i] = blob + at;
		while (at < len && blob[at])
			at++;
		if (at++ >= len)
			return 0;
	}
	vector[count] = 0;
	return at == len;
}

/* read_config fills s from the control pipe. */
static void read_config(struct script *s)
{
	long err = read_all(FD_CONTROL, &config, sizeof config);
	if (err)
		start_failed(STAGE_CONFIG, err);
	u64 blobs = (u64)config.filter_len + config.argv_len + config.env_len;
	if (config.magic != CONFIG_MAGIC || config.version != CONFIG_VERSION || blobs > CONFIG_MAX_BYTES ||
	    config.argv_count == 0 || config.argv_count > config.argv_len || config.env_count > config.env_len ||
	    config.filter_len == 0 || config.filter_len > FILTER_MAX_BYTES ||
	    config.filter_len % sizeof(struct sock_filter))
		start_failed(STAGE_CONFIG, -EINVAL);

	u64 vectors = ((u64)config.argv_count + config.env_count + 2) * sizeof(char *);
	long memory = SYS(mmap, 0, vectors + blobs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory < 0 && memory > -4096)
		start_failed(STAGE_CONFIG, memory);
	s->config = &config;
	s->argv = (char **)memory;
	s->env = s->argv + config.argv_count + 1;
	char *blob = (char *)memory + vectors;
	err = read_all(FD_CONTROL, blob, blobs);
	if (err)
		start_failed(STAGE_CONFIG, err);
	s->filter = (struct sock_filter *)blob;
	if (!point(s->argv, config.argv_count, blob + config.filter_len, config.argv_len) ||
	    !point(s->env, config.env_count, blob + config.filter_len + config.argv_len, config.env_len))
		start_failed(STAGE_CONFIG, -EINVAL);
}

/* start_script returns the leader's pid once the interpreter was executed. */
static int start_script(const struct script *s, u32 misplaced)
{
	int status[2];
	u32 failure[2];
	long err = SYS(pipe2, status, O_CLOEXEC, 0, 0, 0, 0);
	if (err)
		start_failed(STAGE_FORK, err);
	send_frame(FRAME_READY, misplaced, 0, 0, 0);
	long pid = sys_fork();
	if (pid < 0)
		start_failed(STAGE_FORK, pid);
	if (pid == 0) {
		/* Marked close-on-exec like everything else; closed by hand so that the script's side never holds them. */
		sys_close(FD_REPORT);
		sys_close(FD_CONTROL);
		run_child(s, status[1]);
	}
	sys_close(status[1]);
	/* With 0 to 2 closed here, the streams end when the last process of the script is gone. */
	for (int fd = 0; fd <= 2; fd++)
		sys_close(fd);
	if (read_all(status[0], failure, sizeof failure) == 0)
		start_failed(failure[0], -(long)failure[1]);
	sys_close(status[0]);
	send_frame(FRAME_STARTED, 0, 0, 0, 0);
	return (int)pid;
}

/* reap collects every process that ended; true once the leader is among them. */
static int reap(int leader, int *leader_status, int options)
{
	int done = 0, status;
	for (;;) {
		long pid = sys_wait(-1, &status, options);
		if (pid == -EINTR)
			continue;
		if (pid <= 0)
			return done;
		if (pid == leader) {
			*leader_status = status;
			done = 1;
		}
	}
}

/* wait_for_leader returns when the leader ended (0), was to be killed (1), or the supervisor is gone (2). */
static int wait_for_leader(int leader, int signal_fd, int *status)
{
	struct pollfd polled[2] = {{signal_fd, POLLIN, 0}, {FD_CONTROL, POLLIN, 0}};
	struct signalfd_siginfo info;
	char command;
	for (;;) {
		/* Before the command: a script that ended by itself was not killed, however late the news arrives. */
		if (reap(leader, status, WAIT_NO_HANG))
			return 0;
		long n = SYS(ppoll, polled, 2, 0, 0, 0, 0);
		if (n == -EINTR)
			continue;
		if (polled[0].revents)
			sys_read(signal_fd, &info, sizeof info);
		if (polled[1].revents) {
			if (reap(leader, status, WAIT_NO_HANG))
				return 0;
			return sys_read(FD_CONTROL, &command, 1) == 1 && command == COMMAND_KILL ? 1 : 2;
		}
	}
}

/* kill_all returns when PID 1 is alone. The loop is for whatever was being born while the signal went round. */
static int kill_all(int leader, int *status)
{
	int seen = 0, one;
	for (;;) {
		sys_kill(-1, SIGKILL);
		long pid = sys_wait(-1, &one, 0);
		if (pid == -EINTR)
			continue;
		if (pid < 0)
			return seen;
		if (pid == leader) {
			*status = one;
			seen = 1;
		}
	}
}

/* cpu_time is that of every process this one ever waited for, in microseconds. */
static u64 cpu_time(void)
{
	struct rusage usage;
	if (SYS(getrusage, RUSAGE_CHILDREN, &usage, 0, 0, 0, 0))
		return 0;
	return ((u64)usage.ru_utime.tv_sec + (u64)usage.ru_stime.tv_sec) * 1000000 +
	       (u64)usage.ru_utime.tv_usec + (u64)usage.ru_stime.tv_usec;
}

static void run_init(void)
{
	struct script script;
	int status = 0;
	u64 all = ~0ULL, child_signal = 1ULL << (SIGCHLD - 1);

	/* First: a process of the script must find nothing of ours in /proc, nor attach to us. */
	sys_prctl(PR_SET_DUMPABLE, 0);
	/* Whatever else the supervisor or bubblewrap left open. */
	SYS(close_range, FD_REVISION + 1, ~0U, 0, 0, 0, 0);
	for (int fd = FD_REPORT; fd <= FD_REVISION; fd++)
		SYS(fcntl, fd, F_SETFD, FD_CLOEXEC, 0, 0, 0);
	SYS(rt_sigprocmask, SIG_SETMASK, &all, 0, 8, 0, 0);
	SYS(umask, 022, 0, 0, 0, 0, 0);

	read_config(&script);
	long err = become(config.run_id);
	if (err)
		start_failed(STAGE_IDENTITY, err);
	u32 misplaced = place(config.cpus, CPU_WORDS) != 0;
	err = stage(FD_REVISION);
	if (err == 0)
		err = sys_mkdir(AT_ROOT, PATH_OUTPUT_DIR "/" NAME_ARTIFACTS, 0755);
	if (err)
		start_failed(STAGE_STAGING, err);
	/* A directory of the host: it must be gone before there is anybody to use it. */
	sys_close(FD_REVISION);

	long signal_fd = SYS(signalfd4, -1, &child_signal, 8, SFD_CLOEXEC | SFD_NONBLOCK, 0, 0);
	if (signal_fd < 0)
		start_failed(STAGE_FORK, signal_fd);
	int leader = start_script(&script, misplaced);

	int why = wait_for_leader(leader, (int)signal_fd, &status);
	if (why == 0)
		send_frame(FRAME_EXITED, (u32)status, 0, 0, 0);
	int killed_leader = kill_all(leader, &status);
	if (why == 2)
		sys_exit(1);
	if (killed_leader)
		send_frame(FRAME_EXITED, (u32)status, 1, 0, 0);

	u32 cut = collect(&config);
	send_frame(FRAME_END, cut, cpu_time(), 0, 0);
	sys_exit(0);
}

/* The kernel leaves argc and argv on the stack. */
__attribute__((used, noreturn)) void helper_main(long *stack)
{
	if (SYS(getpid, 0, 0, 0, 0, 0, 0) == 1)
		run_init();
	/* Anywhere else it is the program of a probe run: see probe.c. */
	run_probe((int)stack[0], (char **)(stack + 1));
	sys_exit(0);
	__builtin_unreachable();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall helper_main\n\thlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x0, sp\n\tbl helper_main\n\tbrk #1\n");
#endif
