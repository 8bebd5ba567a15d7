/*
 * The script's process, between fork and exec: give up everything, then become the interpreter.
 */
#include "child.h"
#include "identity.h"
#include "landlock.h"

/* fail tells PID 1 which step did not work. The pipe closes on exec, so silence means success. */
static void fail(int fd, u32 stage, long err)
{
	u32 message[2] = {stage, (u32)-err};
	write_all(fd, message, sizeof message);
	sys_exit(127);
}

static long limit(int resource, u64 value)
{
	/* A hard limit can only be lowered: never ask for more than there is. */
	struct rlimit64 old, new;
	long err = SYS(prlimit64, 0, resource, 0, &old, 0, 0);
	if (err)
		return err;
	new.rlim_cur = new.rlim_max = value < old.rlim_max ? value : old.rlim_max;
	return SYS(prlimit64, 0, resource, &new, 0, 0, 0);
}

/* The kernel lets every process raise its score, so that the script dies before PID 1, which has to tell about it. Not
 * being able to is not worth refusing the run: the memory limit holds without. */
static void prefer_for_oom_kill(void)
{
	/* As a copy of PID 1 we are not dumpable, so /proc/self belongs to root. */
	sys_prctl(PR_SET_DUMPABLE, 1);
	long fd = sys_open(AT_ROOT, "/proc/self/oom_score_adj", O_WRONLY, 0);
	if (fd < 0)
		return;
	sys_write((int)fd, "1000", 4);
	sys_close((int)fd);
}

static long reset_signals(void)
{
	/* The kernel's own layout; zero means default action, no flags, empty mask. */
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		u64 mask;
	} action = {0, 0, 0, 0};
	u64 none = 0;
	for (int n = 1; n <= 64; n++)
		if (n != SIGKILL && n != SIGSTOP)
			SYS(rt_sigaction, n, &action, 0, 8, 0, 0);
	return SYS(rt_sigprocmask, SIG_SETMASK, &none, 0, 8, 0, 0);
}

/* All of this was dropped by the engine before. It is done again, and checked, because it is cheap and everything else leans on it. */
static long drop_privileges(void)
{
	long err = sys_prctl(PR_SET_NO_NEW_PRIVS, 1);
	return err ? err : drop_capabilities();
}

/* execute becomes the program, and returns -errno when it cannot. A name without a slash is looked for in the PATH that the
 * script is given, as a shell would: the first that may be executed is taken. */
static long execute(const struct script *s)
{
	char path[512];
	long result = -ENOENT;
	const char *name = s->argv[0], *dirs = 0;
	u64 length = str_len(name);
	for (u64 i = 0; i < length; i++)
		if (name[i] == '/')
			return SYS(execve, name, s->argv, s->env, 0, 0, 0);
	for (char **e = s->env; *e; e++)
		if ((*e)[0] == 'P' && (*e)[1] == 'A' && (*e)[2] == 'T' && (*e)[3] == 'H' && (*e)[4] == '=')
			dirs = *e + 5;
	while (dirs && *dirs) {
		u64 n = 0;
		while (dirs[n] && dirs[n] != ':')
			n++;
		if (n && n + 1 + length + 1 <= sizeof path) {
			memcpy(path, dirs, n);
			path[n] = '/';
			memcpy(path + n + 1, name, length + 1);
			long err = SYS(execve, path, s->argv, s->env, 0, 0, 0);
			if (err != -ENOENT && err != -ENOTDIR)
				result = err;
			if (err == -E2BIG || err == -ENOMEM)
				return err;
		}
		dirs += n + (dirs[n] == ':');
	}
	return result;
}

void run_child(const struct script *s, int status_fd)
{
	const struct config_header *c = s->config;
	long err;

	err = SYS(setsid, 0, 0, 0, 0, 0, 0);
	if (err < 0)
		fail(status_fd, STAGE_SESSION, err);
	err = reset_signals();
	if (err)
		fail(status_fd, STAGE_SESSION, err);
	prefer_for_oom_kill();

	/* 1, not 0: the kernel runs no core handler at all for a limit of 1, but still pipes to one for a limit of 0. */
	if ((err = limit(RLIMIT_CORE, 1)) || (err = limit(RLIMIT_NOFILE, c->limit_nofile)) ||
	    (err = limit(RLIMIT_FSIZE, c->limit_fsize)) || (err = limit(RLIMIT_MEMLOCK, c->limit_memlock)) ||
	    (err = limit(RLIMIT_NPROC, c->limit_nproc)))
		fail(status_fd, STAGE_LIMITS, err);

	err = drop_privileges();
	if (err)
		fail(status_fd, STAGE_PRIVILEGES, err);

	SYS(umask, 022, 0, 0, 0, 0, 0);
	err = SYS(chdir, PATH_SKILL, 0, 0, 0, 0, 0);
	if (err)
		fail(status_fd, STAGE_DIRECTORY, err);

	/* After no_new_privs, which it needs, and before the filter. A kernel that has it and does not apply it runs nothing. */
	err = confine();
	if (err)
		fail(status_fd, STAGE_LANDLOCK, err);

	/* Last: the filter would refuse some of the above. The engine's own filter, if any, stays on top. */
	struct sock_fprog program = {
		.len = (unsigned short)(c->filter_len / sizeof(struct sock_filter)),
		.filter = s->filter,
	};
	err = SYS(prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0, 0);
	if (err)
		fail(status_fd, STAGE_FILTER, err);

	fail(status_fd, STAGE_EXEC, execute(s));
}
