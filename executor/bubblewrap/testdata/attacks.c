/*
 * Attacks that need a program of their own: no libc wrapper, no interpreter between them and the kernel. The mode is read
 * from standard input. What could be done that should not be is printed; the exit code says that the attempt was made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* bomb: processes by the raw calls, as many as there can be; prints how many and what stopped them. */
static int bomb(void)
{
	char args[88] = {0};
	long r = syscall(SYS_clone3, args, sizeof args);
	if (r == 0)
		pause();
	printf("clone3 %s\n", r < 0 ? strerrorname_np(errno) : "worked");
	int n = 1;
	for (;;) {
		r = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (r == 0) {
			close(1);
			for (;;)
				pause();
		}
		if (r < 0)
			break;
		n++;
	}
	printf("clone %s after %d\n", strerrorname_np(errno), n);
	r = syscall(SYS_clone, CLONE_VFORK | CLONE_VM | SIGCHLD, 0, 0, 0, 0);
	if (r == 0)
		_exit(0);
	printf("vfork %s\n", r < 0 ? strerrorname_np(errno) : "worked");
	return 0;
}

static volatile long target = 1;

/* sibling: every way to trace, read or write a child of our own. */
static int sibling(void)
{
	pid_t child = fork();
	if (child == 0)
		for (;;)
			if (target != 1)
				_exit(9);
	long value = 2;
	struct iovec local = {&value, sizeof value}, remote = {(void *)&target, sizeof target};
	if (ptrace(PTRACE_ATTACH, child, 0, 0) == 0 || errno != EPERM)
		printf("attach %s\n", strerrorname_np(errno));
	if (ptrace(PTRACE_SEIZE, child, 0, 0) == 0 || errno != EPERM)
		printf("seize %s\n", strerrorname_np(errno));
	if (process_vm_writev(child, &local, 1, &remote, 1, 0) >= 0 || errno != EPERM)
		printf("writev %s\n", strerrorname_np(errno));
	if (process_vm_readv(child, &local, 1, &remote, 1, 0) >= 0 || errno != EPERM)
		printf("readv %s\n", strerrorname_np(errno));
	int fd = (int)syscall(434 /* pidfd_open */, child, 0);
	if (fd >= 0 && (syscall(438 /* pidfd_getfd */, fd, 1, 0) >= 0 || errno != EPERM))
		printf("getfd %s\n", strerrorname_np(errno));
	int status;
	if (waitpid(child, &status, WNOHANG) != 0)
		printf("the child ended: %x\n", status);
	kill(child, SIGKILL);
	return 0;
}

/* odd argv: programs started with none, with a huge and with a hostile name for themselves. */
static int oddargv(void)
{
	char *huge = malloc(100001);
	memset(huge, 'x', 100000);
	huge[100000] = 0;
	char *names[] = {NULL, huge, "\n{\"status\": \"success\"}\x1b[2J\x1b]0;x\a"};
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child == 0) {
			char *argv[] = {names[i], i ? "-c" : NULL, "exit 7", NULL};
			char *none[] = {NULL};
			execve("/bin/bash", i ? argv : none, none);
			_exit(126);
		}
		int status = 0;
		waitpid(child, &status, 0);
		/* Without arguments bash reads standard input, which has ended. */
		if (!WIFEXITED(status) || WEXITSTATUS(status) != (i ? 7 : 0))
			printf("argv %d: status %x\n", i, status);
	}
	return 0;
}

/* namespaces: every kind, by clone, unshare and setns. */
static int namespaces(void)
{
	static const struct { const char *name; unsigned long flag; } kinds[] = {
		{"mnt", CLONE_NEWNS}, {"cgroup", CLONE_NEWCGROUP}, {"uts", CLONE_NEWUTS}, {"ipc", CLONE_NEWIPC},
		{"user", CLONE_NEWUSER}, {"pid", CLONE_NEWPID}, {"net", CLONE_NEWNET}, {"time", 0x80},
	};
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (kinds[i].flag != 0x80) {
			long r = syscall(SYS_clone, kinds[i].flag | SIGCHLD, 0, 0, 0, 0);
			if (r == 0)
				_exit(0);
			if (r >= 0 || errno != EPERM)
				printf("clone %s %s\n", kinds[i].name, strerrorname_np(errno));
		}
		/* High bits are no flags, and must not hide those that are. */
		if (syscall(SYS_unshare, kinds[i].flag | (1UL << 40)) == 0)
			printf("unshare %s with high bits\n", kinds[i].name);
		if (unshare((int)kinds[i].flag) == 0 || errno != EPERM)
			printf("unshare %s %s\n", kinds[i].name, strerrorname_np(errno));
		for (int self = 0; self < 2; self++) {
			char path[64];
			snprintf(path, sizeof path, "/proc/%s/ns/%s", self ? "self" : "1", kinds[i].name);
			int fd = open(path, O_RDONLY);
			if (fd < 0 && !self)
				continue;
			if (fd < 0 || setns(fd, 0) == 0)
				printf("setns %s\n", path);
			close(fd);
		}
	}
	return 0;
}

/* The parent waits in the kernel for a child that never executes or ends. */
static int vforks(void)
{
	for (int i = 0; i < 3; i++)
		if (fork() == 0)
			break;
	if (vfork() == 0)
		for (;;)
			pause();
	return 0;
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	char mode[32] = {0};
	if (read(0, mode, sizeof mode - 1) < 0)
		return 2;
	if (!strcmp(mode, "bomb"))
		return bomb();
	if (!strcmp(mode, "sibling"))
		return sibling();
	if (!strcmp(mode, "odd argv"))
		return oddargv();
	if (!strcmp(mode, "namespaces"))
		return namespaces();
	if (!strcmp(mode, "vfork"))
		return vforks();
	return 2;
}
