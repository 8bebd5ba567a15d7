/*
 * The Landlock policy of a script: everything may be read and executed, the writable places may be changed, and nothing
 * else, whatever owner, mode or mount says. It is a second lock behind mounts and uids, and the one that still holds when a
 * mount was forgotten to be read-only.
 */
#include "landlock.h"

#include "sys.h"

/* linux/landlock.h, whose installed copy may be older than the kernel that this runs on. */
#define RIGHT_EXECUTE (1ULL << 0)
#define RIGHT_WRITE_FILE (1ULL << 1)
#define RIGHT_READ_FILE (1ULL << 2)
#define RIGHT_READ_DIR (1ULL << 3)
#define RIGHT_MAKE_CHAR (1ULL << 6)
#define RIGHT_MAKE_BLOCK (1ULL << 11)
#define RIGHT_REFER (1ULL << 13)
#define RIGHT_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define RIGHT_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_UNIX 1        /* ABI 6 */
#define CREATE_RULESET_VERSION 1
#define RULE_PATH_BENEATH 1

struct ruleset {
	u64 files;
	u64 network;
	u64 scoped;
};

struct path_rule {
	u64 allowed;
	int parent;
} __attribute__((packed));

long landlock_abi(void)
{
	long abi = SYS(landlock_create_ruleset, 0, 0, CREATE_RULESET_VERSION, 0, 0, 0);
	/* EPERM: a container's filter that does not know the call. */
	return abi == -ENOSYS || abi == -EOPNOTSUPP || abi == -EPERM ? 0 : abi;
}

static long allow(int ruleset, const char *path, u64 rights)
{
	struct path_rule rule = {.allowed = rights};
	long fd = sys_open(AT_ROOT, path, O_PATH, 0);
	if (fd < 0)
		return fd;
	rule.parent = (int)fd;
	long err = SYS(landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0, 0, 0);
	sys_close((int)fd);
	return err;
}

long confine(void)
{
	static const char *const writable[] = {PATH_SKILL, PATH_OUTPUT_DIR, PATH_HOME, "/tmp", "/dev/shm"};
	long abi = landlock_abi();
	if (abi < 0)
		return abi;
	/* ABI 1 cannot allow moving a file to another folder, which ordinary programs do. */
	if (abi < LANDLOCK_MIN_ABI)
		return 0;

	u64 all = (RIGHT_REFER << 1) - 1;
	u64 system = RIGHT_EXECUTE | RIGHT_READ_FILE | RIGHT_READ_DIR;
	u64 device = RIGHT_READ_FILE | RIGHT_READ_DIR | RIGHT_WRITE_FILE;
	if (abi >= 3) {
		all |= RIGHT_TRUNCATE;
		device |= RIGHT_TRUNCATE;
	}
	if (abi >= 5) {
		all |= RIGHT_IOCTL_DEV;
		device |= RIGHT_IOCTL_DEV;
	}
	u64 change = all & ~(RIGHT_MAKE_CHAR | RIGHT_MAKE_BLOCK | RIGHT_IOCTL_DEV);

	/* Network rights are left alone: there is no network, and loopback is the script's own. So are signals: nobody but PID 1
	 * is outside of the policy and can be seen, and asking whether it lives does no harm. */
	struct ruleset attr = {.files = all, .network = 0, .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX : 0};
	u64 size = abi >= 6 ? sizeof attr : sizeof attr.files;
	long fd = SYS(landlock_create_ruleset, &attr, size, 0, 0, 0, 0);
	if (fd < 0)
		return fd;
	long err = allow((int)fd, "/", system);
	if (err == 0)
		err = allow((int)fd, "/dev", device);
	for (u32 i = 0; err == 0 && i < sizeof writable / sizeof *writable; i++)
		err = allow((int)fd, writable[i], change);
	if (err == 0)
		err = SYS(landlock_restrict_self, fd, 0, 0, 0, 0, 0);
	sys_close((int)fd);
	return err;
}
