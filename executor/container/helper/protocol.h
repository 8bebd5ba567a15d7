/*
 * What the executor (Go) and PID 1 of a container (this helper) say to each other, over the container's own standard
 * streams as the engine attaches them: descriptor 0 is what the executor says, descriptor 1 is what PID 1 answers. The
 * script never has either. Integers are little-endian, which both machines that have a helper are: the engine can run
 * elsewhere. protocol.go mirrors this file and a test compares the two.
 *
 *   control  one struct config_header with its blobs (filter, argv, env), then the bytes for the script's standard input,
 *            then the files, each a struct file_header with its path and content; later COMMAND_GO, and at most one
 *            COMMAND_KILL. End of file means that the executor is gone.
 *   report   frames: struct frame, then path_len bytes of path, then size bytes of content where the type has one
 */
#ifndef SALLYPORT_CONTAINER_PROTOCOL_H
#define SALLYPORT_CONTAINER_PROTOCOL_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

/* The streams of the container, moved out of the way of the script's. */
#define FD_REPORT 3
#define FD_CONTROL 4

/* Where things are inside. */
#define PATH_INIT "/.sallyport/init"
#define PATH_SKILL "/skill"
#define PATH_HOME "/home/skill"
#define PATH_INPUT "/run/sallyport/input"
#define PATH_OUTPUT_DIR "/run/sallyport/output/run" /* in a file system of its own; PID 1 makes it, so that it is the run's */
#define NAME_OUTPUT "output.json"
#define NAME_ARTIFACTS "artifacts"

#define CONFIG_MAGIC 0x434c4153
#define CONFIG_VERSION 1
#define CONFIG_MAX_BYTES 4194304
#define FILTER_MAX_BYTES 32768
#define STDIN_MAX_BYTES 67108864

struct config_header {
	u32 magic;
	u32 version;
	u32 argv_len; /* bytes of NUL-terminated strings; the first is the program: a path, or a name to look for in PATH */
	u32 argv_count;
	u32 env_len; /* bytes of NUL-terminated NAME=value strings */
	u32 env_count;
	u32 filter_len; /* bytes of struct sock_filter */
	u32 file_count;
	u32 artifact_files;
	u32 artifact_entries; /* directory entries that may be looked at */
	u32 artifact_depth;
	u32 cpu_count; /* processors to be placed on, 0 leaves them alone */
	u32 cpu_first; /* which of the allowed ones is the first, counted round */
	u32 unused;
	u64 stdin_len;
	u64 stream_bytes; /* of each of stdout and stderr that are passed on; what is more is counted */
	u64 artifact_bytes;
	u64 output_bytes;
	u64 limit_nofile;
	u64 limit_fsize;
	u64 limit_nproc;
	u64 limit_memlock;
	u64 cpu_budget; /* microseconds of all processes together, 0 for none */
};

struct file_header {
	u32 root; /* ROOT_SKILL or ROOT_INPUT */
	u32 path_len;
	u64 size;
};

#define ROOT_SKILL 0
#define ROOT_INPUT 1

#define COMMAND_GO 'G'
#define COMMAND_KILL 'K'

struct frame {
	u32 type;
	u32 value;
	u32 path_len;
	u32 unused;
	u64 size;
};

/* Frame types. */
#define FRAME_READY 1        /* everything is staged; nothing runs before COMMAND_GO. value: 1 when the kernel refused the CPUs */
#define FRAME_STARTED 2      /* the interpreter was executed */
#define FRAME_START_FAILED 3 /* value: stage, size field: errno; nothing of the script ran */
#define FRAME_EXITED 4       /* value: raw wait status of the leader, size field: a KILLED_ reason, 0 when it ended by itself */
#define FRAME_OUTPUT 5       /* SKILL_OUTPUT with its content */
#define FRAME_ARTIFACT 6     /* one artifact with its path and content */
#define FRAME_SKIPPED 7      /* value: skip reason, with the path */
#define FRAME_END 8          /* value: 1 when the walk was cut short */
#define FRAME_STREAM 9       /* value: 1 or 2, with content: what the script wrote */
#define FRAME_TOTAL 10       /* value: 1 or 2, size field: bytes that the script wrote, passed on or not */
#define FRAME_USAGE 11       /* value: a USAGE_ kind, size field: the number */

#define KILLED_BY_COMMAND 1
#define KILLED_BY_CPU 2

/* Kinds of FRAME_USAGE. What could not be read is not sent. */
#define USAGE_CPU 1            /* microseconds */
#define USAGE_MEMORY_PEAK 2    /* bytes */
#define USAGE_OOM_KILLS 3      /* processes killed for memory */
#define USAGE_PROCESS_LIMIT 4  /* processes refused */

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

/* Reasons of FRAME_SKIPPED. */
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
#define STREAM_CHUNK 32768

/* The oldest Landlock that is used. */
#define LANDLOCK_MIN_ABI 2

#endif
