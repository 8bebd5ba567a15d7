/*
 * What the supervisor (Go) and PID 1 of a sandbox (this helper) say to each other.
 *
 * Two pipes, both only ever held by the supervisor and PID 1. Integers are native: both ends are one machine.
 * protocol.go mirrors this file and a test compares the two.
 *
 *   control  supervisor -> PID 1   one struct config_header with its blobs, later at most one COMMAND_KILL byte;
 *                                  end of file means that the supervisor is gone
 *   report   PID 1 -> supervisor   frames: struct frame, then path_len bytes of path, then size bytes of content
 */
#ifndef SALLYPORT_PROTOCOL_H
#define SALLYPORT_PROTOCOL_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

/* The descriptors that bubblewrap hands on. The script itself gets 0 to 2 and nothing else. */
#define FD_REPORT 3
#define FD_CONTROL 4
#define FD_REVISION 5

/* Where things are inside. */
#define PATH_INIT "/run/sallyport/init"
#define PATH_SKILL "/skill"
#define PATH_HOME "/home/skill"
#define PATH_OUTPUT_DIR "/run/sallyport/output"
#define NAME_OUTPUT "output.json"
#define NAME_ARTIFACTS "artifacts"

#define CONFIG_MAGIC 0x54504c53
#define CONFIG_VERSION 3
#define CONFIG_MAX_BYTES 4194304
#define FILTER_MAX_BYTES 32768
#define CPU_WORDS 16

struct config_header {
	u32 magic;
	u32 version;
	u32 argv_len; /* bytes of NUL-terminated strings; the first is the program */
	u32 argv_count;
	u32 env_len; /* bytes of NUL-terminated NAME=value strings */
	u32 env_count;
	u32 filter_len; /* bytes of struct sock_filter */
	u32 artifact_files;
	u32 artifact_entries; /* directory entries that may be looked at */
	u32 artifact_depth;
	u32 run_id; /* uid and gid to become, 0 to stay what bubblewrap made us */
	u32 unused;
	u64 artifact_bytes;
	u64 output_bytes;
	u64 limit_nofile;
	u64 limit_fsize;
	u64 limit_nproc;
	u64 limit_memlock;
	u64 limit_data; /* 0 leaves it alone */
	u64 limit_cpu; /* seconds of one process; 0 leaves it alone */
	u64 cpus[CPU_WORDS]; /* bit n of word n / 64 is CPU n; none set leaves them alone */
};

#define COMMAND_KILL 'K'

struct frame {
	u32 type;
	u32 value;
	u32 path_len;
	u32 unused;
	u64 size;
};

/* Frame types. */
#define FRAME_READY 1        /* everything is staged; whatever follows may have run the script. value: 1 when the kernel
			      * refused the CPUs */
#define FRAME_STARTED 2      /* the interpreter was executed */
#define FRAME_START_FAILED 3 /* value: stage, size field: errno; nothing of the script ran */
#define FRAME_EXITED 4       /* value: raw wait status of the leader, size field: 1 when it was killed on command */
#define FRAME_OUTPUT 5       /* SKILL_OUTPUT with its content */
#define FRAME_ARTIFACT 6     /* one artifact with its path and content */
#define FRAME_SKIPPED 7      /* value: skip reason, with the path */
#define FRAME_END 8          /* value: 1 when the walk was cut short, size field: CPU time in microseconds */

/* Stages of FRAME_START_FAILED. */
#define STAGE_CONFIG 1
#define STAGE_STAGING 2
#define STAGE_FORK 3
#define STAGE_SESSION 4
#define STAGE_LIMITS 5
#define STAGE_PRIVILEGES 6
#define STAGE_DIRECTORY 7
#define STAGE_FILTER 8
#define STAGE_EXEC 9
#define STAGE_LANDLOCK 10
#define STAGE_IDENTITY 11

/* Why a file was left behind. */
#define SKIP_NOT_REGULAR 1
#define SKIP_HARD_LINK 2
#define SKIP_TOO_LARGE 3
#define SKIP_TOO_MANY 4
#define SKIP_TOO_DEEP 5
#define SKIP_PATH_TOO_LONG 6
#define SKIP_UNREADABLE 7

/* After this many skipped files PID 1 stops naming them; FRAME_END says that the walk was cut short. */
#define SKIP_MAX_FRAMES 64
#define ARTIFACT_PATH_MAX 1024

/* The oldest Landlock that is used. */
#define LANDLOCK_MIN_ABI 2

#endif
