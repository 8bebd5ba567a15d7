/*
 * Staging and collecting: the two walks over a directory tree. Both are iterative and bounded, open nothing through
 * a link and treat every name as bytes.
 */
#include "files.h"
#include "wire.h"

#include <linux/types.h>

/* A component path has at most 1024 bytes, so at most 512 segments. */
#define DEPTH_MAX 520
#define PATH_BYTES 16384

struct dirent {
	u64 inode;
	u64 offset;
	unsigned short length;
	u8 type;
	char name[];
};

/* One open directory of the walk. The buffer holds at least one entry of the longest name. */
struct level {
	int fd;
	u32 path_len; /* of this directory, in walk.path */
	u32 position, filled;
	char entries[1024] __attribute__((aligned(8)));
};

struct walk {
	u32 entries_left;
	u32 cut; /* the bounds ended the walk */
	char path[PATH_BYTES];
	u32 path_len;
	struct level level[DEPTH_MAX];
};

/* Too big for the stack, and touched only as deep as a tree goes. PID 1 has one thread. */
static struct walk walk;

static char block[65536];

typedef long (*visit_file)(int dir, const char *name, const struct statx *st);

/* enter descends into name; -errno when it cannot. */
static long enter(int depth, int dir, const char *name)
{
	long fd = sys_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	walk.level[depth].fd = (int)fd;
	walk.level[depth].path_len = walk.path_len;
	walk.level[depth].position = walk.level[depth].filled = 0;
	return 0;
}

/* append sets walk.path to base_len bytes plus "/name"; false when that does not fit. */
static int append(u32 base_len, const char *name)
{
	u64 n = str_len(name);
	u32 at = base_len;
	if (at + 1 + n + 1 > PATH_BYTES)
		return 0;
	if (at)
		walk.path[at++] = '/';
	for (u64 i = 0; i < n; i++)
		walk.path[at + i] = name[i];
	walk.path_len = at + (u32)n;
	walk.path[walk.path_len] = 0;
	return 1;
}

/* run_walk visits everything below dir_fd, which it does not close. It stops at the first visitor's -errno. A directory that
 * cannot be opened is passed over. */
static long run_walk(int dir_fd, u32 entries, visit_file directory, visit_file file)
{
	struct statx st;
	int depth = 0;
	long err;

	walk.entries_left = entries;
	walk.cut = 0;
	walk.path_len = 0;
	err = enter(0, dir_fd, ".");
	if (err)
		return err;
	while (depth >= 0) {
		struct level *l = &walk.level[depth];
		if (l->position >= l->filled) {
			long n = SYS(getdents64, l->fd, l->entries, sizeof l->entries, 0, 0, 0);
			if (n <= 0) {
				sys_close(l->fd);
				depth--;
				if (n < 0)
					walk.cut = 1;
				continue;
			}
			l->position = 0;
			l->filled = (u32)n;
		}
		struct dirent *entry = (struct dirent *)(l->entries + l->position);
		const char *name = entry->name;
		l->position += entry->length;
		if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0)))
			continue;
		if (walk.entries_left == 0 || !append(l->path_len, name)) {
			walk.cut = 1;
			break;
		}
		walk.entries_left--;
		err = sys_statx(l->fd, name, AT_SYMLINK_NOFOLLOW, &st);
		if (err)
			break;
		if ((st.stx_mode & S_IFMT) != S_IFDIR) {
			err = file(l->fd, name, &st);
			if (err)
				break;
			continue;
		}
		err = directory(l->fd, name, &st);
		if (err == 1) { /* the visitor does not want it */
			err = 0;
			continue;
		}
		if (err)
			break;
		err = depth + 1 < DEPTH_MAX ? enter(depth + 1, l->fd, name) : -ELOOP;
		if (err == 0) {
			depth++;
			continue;
		}
		walk.cut = 1;
		err = 0;
	}
	for (; depth >= 0; depth--)
		sys_close(walk.level[depth].fd);
	return err;
}

/* ---- staging: names that the executor has looked at ---- */

/* make_folders makes the folders of path, whose last part is the file's. */
static long make_folders(int root, char *path)
{
	for (char *p = path; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		long err = sys_mkdir(root, path, 0755);
		*p = '/';
		if (err && err != -EEXIST)
			return err;
	}
	return 0;
}

/* stage_file writes one file. Files become executable whatever mode they had: a script that runs a sibling must not depend on
 * how the skill was packed. */
static long stage_file(int root, char *path, u64 size, int mode)
{
	long err = 0, to = sys_open(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (to == -ENOENT) {
		err = make_folders(root, path);
		if (err)
			return err;
		to = sys_open(root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	}
	if (to < 0)
		return to;
	while (size && !err) {
		u64 n = size < sizeof block ? size : sizeof block;
		err = control_read(block, n);
		if (!err)
			err = write_all((int)to, block, n);
		size -= n;
	}
	sys_close((int)to);
	return err;
}

long stage(u32 count)
{
	static const char *const places[] = {PATH_SKILL, PATH_INPUT};
	static const int modes[] = {0755, 0444};
	struct file_header header;
	long roots[2], err = 0;

	for (int i = 0; i < 2; i++) {
		roots[i] = sys_open(AT_ROOT, places[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (roots[i] < 0)
			return roots[i];
	}
	while (count-- && !err) {
		err = control_read(&header, sizeof header);
		if (!err && (header.root > ROOT_INPUT || header.path_len == 0 || header.path_len >= PATH_BYTES))
			err = -EINVAL;
		if (!err)
			err = control_read(walk.path, header.path_len);
		if (err)
			break;
		walk.path[header.path_len] = 0;
		err = stage_file((int)roots[header.root], walk.path, header.size, modes[header.root]);
	}
	sys_close((int)roots[0]);
	sys_close((int)roots[1]);
	return err;
}

/* ---- collecting: hostile names, types, modes and sizes ---- */

static const struct config_header *collecting;
static u64 bytes_left;
static u32 files_left, skips_left, skips_unnamed;

static long skip(u32 reason)
{
	u32 n = walk.path_len < ARTIFACT_PATH_MAX ? walk.path_len : ARTIFACT_PATH_MAX;
	if (skips_left == 0) {
		skips_unnamed = 1;
		return 0;
	}
	skips_left--;
	send_frame(FRAME_SKIPPED, reason, 0, walk.path, n);
	return 0;
}

/* open_file opens a regular file that has one name and at most limit bytes. O_NONBLOCK: a FIFO must not hang us, even
 * if a check above were wrong. Returns a descriptor, or minus a skip reason. */
static long open_file(int dir, const char *name, u64 limit, struct statx *st)
{
	if (sys_statx(dir, name, AT_SYMLINK_NOFOLLOW, st))
		return -SKIP_UNREADABLE;
	if ((st->stx_mode & S_IFMT) != S_IFREG)
		return -SKIP_NOT_REGULAR;
	long fd = sys_open(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -EACCES) {
		/* The script took its own right to read away. Nobody is left to swap the name for a link. */
		SYS(fchmodat, dir, name, 0600, 0, 0, 0);
		fd = sys_open(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	}
	if (fd < 0)
		return -SKIP_UNREADABLE;
	long reason = 0;
	if (sys_statx((int)fd, "", AT_EMPTY_PATH, st))
		reason = SKIP_UNREADABLE;
	else if ((st->stx_mode & S_IFMT) != S_IFREG)
		reason = SKIP_NOT_REGULAR;
	else if (st->stx_nlink != 1)
		reason = SKIP_HARD_LINK;
	else if (st->stx_size > limit)
		reason = SKIP_TOO_LARGE;
	if (reason) {
		sys_close((int)fd);
		return -reason;
	}
	return fd;
}

/* send_content closes fd. A half-sent file cannot be taken back, so a failure ends PID 1 and with it the report. */
static void send_content(int fd, u64 size)
{
	while (size) {
		u64 n = size < sizeof block ? size : sizeof block;
		if (read_all(fd, block, n))
			sys_exit(1);
		report_bytes(block, n);
		size -= n;
	}
	sys_close(fd);
}

static long collect_directory(int dir, const char *name, const struct statx *st)
{
	u32 depth = 1;
	for (u32 i = 0; i < walk.path_len; i++)
		depth += walk.path[i] == '/';
	if (depth > collecting->artifact_depth) {
		skip(SKIP_TOO_DEEP);
		return 1;
	}
	if ((st->stx_mode & 0500) != 0500)
		SYS(fchmodat, dir, name, 0700, 0, 0, 0);
	return 0;
}

static long collect_file(int dir, const char *name, const struct statx *unused)
{
	struct statx st;
	(void)unused;
	if (walk.path_len > ARTIFACT_PATH_MAX)
		return skip(SKIP_PATH_TOO_LONG);
	long fd = open_file(dir, name, bytes_left, &st);
	if (fd < 0)
		return skip((u32)-fd);
	if (files_left == 0) {
		sys_close((int)fd);
		return skip(SKIP_TOO_MANY);
	}
	files_left--;
	bytes_left -= st.stx_size;
	send_frame(FRAME_ARTIFACT, 0, st.stx_size, walk.path, walk.path_len);
	send_content((int)fd, st.stx_size);
	return 0;
}

static void collect_output(int dir)
{
	struct statx st;
	long fd = open_file(dir, NAME_OUTPUT, collecting->output_bytes, &st);
	if (fd >= 0) {
		send_frame(FRAME_OUTPUT, 0, st.stx_size, 0, 0);
		send_content((int)fd, st.stx_size);
		return;
	}
	if (sys_statx(dir, NAME_OUTPUT, AT_SYMLINK_NOFOLLOW, &st) == 0)
		send_frame(FRAME_SKIPPED, (u32)-fd, 0, 0, 0); /* no path: it is SKILL_OUTPUT itself */
}

u32 collect(const struct config_header *config)
{
	collecting = config;
	bytes_left = config->artifact_bytes;
	files_left = config->artifact_files;
	skips_left = SKIP_MAX_FRAMES;
	skips_unnamed = 0;

	long dir = sys_open(AT_ROOT, PATH_OUTPUT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir == -EACCES) {
		SYS(fchmodat, AT_ROOT, PATH_OUTPUT_DIR, 0700, 0, 0, 0);
		dir = sys_open(AT_ROOT, PATH_OUTPUT_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	if (dir < 0)
		return 1;
	SYS(fchmodat, dir, ".", 0700, 0, 0, 0);
	collect_output((int)dir);

	struct statx st;
	/* The script may have put a link or a file in the folder's place: then there are no artifacts. */
	if (sys_statx((int)dir, NAME_ARTIFACTS, AT_SYMLINK_NOFOLLOW, &st) || (st.stx_mode & S_IFMT) != S_IFDIR)
		return 0;
	SYS(fchmodat, dir, NAME_ARTIFACTS, 0700, 0, 0, 0);
	long artifacts = sys_open((int)dir, NAME_ARTIFACTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (artifacts < 0)
		return 1;
	long err = run_walk((int)artifacts, config->artifact_entries, collect_directory, collect_file);
	return err != 0 || walk.cut || skips_unnamed;
}
