/*
 * PID 1 of a container: reads one configuration and the files of the run, waits for the word, starts the script, passes on
 * what it writes, outlives it, kills whatever it left, and tells the executor what happened and what it made.
 *
 * Nothing here reads a byte that a tenant wrote as anything but a byte. As PID 1 of its namespace it takes no signal from
 * inside, not even SIGKILL, and its end is the end of every process in there. It ends when the script did, when its
 * executor is gone, or when its time is over, whichever is first.
 */
#include "child.h"
#include "files.h"
#include "identity.h"
#include "probe.h"
#include "pump.h"
#include "usage.h"
#include "wire.h"

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

/* start_failed ends PID 1: nothing of the script ran. It stays until it is told to go, so that the engine has passed on what
 * it said. */
static void start_failed(u32 stage, long err)
{
	char byte;
	send_frame(FRAME_START_FAILED, stage, (u64)-err, 0, 0);
	while (control_read(&byte, 1) == 0)
		;
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

/* read_config fills s from the control stream and returns the bytes for the script's standard input. */
static const char *read_config(struct script *s)
{
	long err = control_read(&config, sizeof config);
	if (err)
		sys_exit(1); /* the executor went away, or never came */
	u64 blobs = (u64)config.filter_len + config.argv_len + config.env_len;
	if (config.magic != CONFIG_MAGIC || config.version != CONFIG_VERSION || blobs > CONFIG_MAX_BYTES ||
	    config.argv_count == 0 || config.argv_count > config.argv_len || config.env_count > config.env_len ||
	    config.filter_len == 0 || config.filter_len > FILTER_MAX_BYTES ||
	    config.filter_len % sizeof(struct sock_filter) || config.stdin_len > STDIN_MAX_BYTES)
		start_failed(STAGE_CONFIG, -EINVAL);

	u64 vectors = ((u64)config.argv_count + config.env_count + 2) * sizeof(char *);
	long memory = SYS(mmap, 0, vectors + blobs + config.stdin_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory < 0 && memory > -4096)
		start_failed(STAGE_CONFIG, memory);
	s->config = &config;
	s->argv = (char **)memory;
	s->env = s->argv + config.argv_count + 1;
	char *blob = (char *)memory + vectors;
	err = control_read(blob, blobs + config.stdin_len);
	if (err)
		sys_exit(1);
	s->filter = (struct sock_filter *)blob;
	if (!point(s->argv, config.argv_count, blob + config.filter_len, config.argv_len) ||
	    !point(s->env, config.env_count, blob + config.filter_len + config.argv_len, config.env_len))
		start_failed(STAGE_CONFIG, -EINVAL);
	return blob + blobs;
}

/* start_script returns the leader's pid once the interpreter was executed; streams gets our ends of its pipes. */
static int start_script(const struct script *s, int streams[3])
{
	int status[2], pipes[3][2];
	u32 failure[2];
	long err = SYS(pipe2, status, O_CLOEXEC, 0, 0, 0, 0);
	for (int i = 0; i < 3 && !err; i++)
		err = SYS(pipe2, pipes[i], O_CLOEXEC, 0, 0, 0, 0);
	if (err)
		start_failed(STAGE_FORK, err);
	long pid = sys_fork();
	if (pid < 0)
		start_failed(STAGE_FORK, pid);
	if (pid == 0) {
		/* Marked close-on-exec like everything else; closed by hand so that the script's side never holds them. */
		sys_close(FD_REPORT);
		sys_close(FD_CONTROL);
		if (SYS(dup3, pipes[0][0], 0, 0, 0, 0, 0) < 0 || SYS(dup3, pipes[1][1], 1, 0, 0, 0, 0) < 0 ||
		    SYS(dup3, pipes[2][1], 2, 0, 0, 0, 0) < 0)
			sys_exit(127);
		run_child(s, status[1]);
	}
	sys_close(status[1]);
	sys_close(pipes[0][0]);
	sys_close(pipes[1][1]);
	sys_close(pipes[2][1]);
	streams[0] = pipes[0][1];
	streams[1] = pipes[1][0];
	streams[2] = pipes[2][0];
	if (read_all(status[0], failure, sizeof failure) == 0)
		start_failed(failure[0], -(long)failure[1]);
	sys_close(status[0]);
	send_frame(FRAME_STARTED, 0, 0, 0, 0);
	return (int)pid;
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

/* number reads a decimal number, 0 for anything else. */
static u64 number(const char *s)
{
	u64 n = 0;
	for (; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (u64)(*s - '0');
	return *s ? 0 : n;
}

static void run_init(int argc, char **argv)
{
	struct script script;
	int status = 0, streams[3];
	u64 all = ~0ULL, child_signal = 1ULL << (SIGCHLD - 1);
	char byte;

	/* First: a process of the script must find nothing of ours in /proc, nor attach to us. */
	sys_prctl(PR_SET_DUMPABLE, 0);
	SYS(rt_sigprocmask, SIG_SETMASK, &all, 0, 8, 0, 0);
	SYS(umask, 022, 0, 0, 0, 0, 0);
	open_wire(argc > 1 ? number(argv[1]) : 0);

	const char *input = read_config(&script);
	u32 misplaced = place(config.cpu_count, config.cpu_first) != 0;
	long err = stage(config.file_count);
	if (err == -EPIPE)
		sys_exit(1);
	if (err == 0)
		err = sys_mkdir(AT_ROOT, PATH_OUTPUT_DIR, 0755);
	if (err == 0)
		err = sys_mkdir(AT_ROOT, PATH_OUTPUT_DIR "/" NAME_ARTIFACTS, 0755);
	if (err)
		start_failed(STAGE_STAGING, err);
	long signal_fd = SYS(signalfd4, -1, &child_signal, 8, SFD_CLOEXEC | SFD_NONBLOCK, 0, 0);
	if (signal_fd < 0)
		start_failed(STAGE_FORK, signal_fd);
	send_frame(FRAME_READY, misplaced, 0, 0, 0);
	if (control_read(&byte, 1) || byte != COMMAND_GO)
		sys_exit(1);

	int leader = start_script(&script, streams);
	u32 why = pump(&config, leader, (int)signal_fd, streams, input, &status);
	if (why == ENDED)
		send_frame(FRAME_EXITED, (u32)status, 0, 0, 0);
	int killed_leader = kill_all(leader, &status);
	if (why == ABANDONED)
		sys_exit(1);
	if (killed_leader)
		send_frame(FRAME_EXITED, (u32)status, why, 0, 0);
	drain(&config, streams);
	send_usage();
	u32 cut = collect(&config);
	send_frame(FRAME_END, cut, 0, 0, 0);
	/* The engine may still be passing on what was said, and may be asked about this container. */
	while (control_read(&byte, 1) == 0)
		;
	sys_exit(0);
}

/* The kernel leaves argc and argv on the stack. */
__attribute__((used, noreturn)) void helper_main(long *stack)
{
	if (SYS(getpid, 0, 0, 0, 0, 0, 0) == 1)
		run_init((int)stack[0], (char **)(stack + 1));
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
