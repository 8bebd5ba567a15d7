// Package container is the executor for hosts that have a container engine: it runs one approved script in a container of its
// own, on any engine that speaks Docker's API over a socket (Docker, Podman).
//
// It owns the container of a run, from its making to the proof that it is gone: its image, limits, files, processes, and what
// the script wrote. It leaves isolation itself to the engine, whose word is not taken for it: a probe run looks at what it really
// does. Its one invariant: nothing of a script begins before the executor gives the word over the container's own standard
// input, and the container ends when that input does; so what failed before the word did not start, and a server that dies takes
// its containers along.
//
// One run, in order. A uid is leased and a container made: no network, a read-only image, no capability, no new privileges,
// limits of memory, processes and processor, sized tmpfs for everything that can be written, and our own static PID 1 (helper/)
// from a volume that is mounted read-only. It is attached to, started, and given everything over its standard input: arguments,
// variables, the filter of system calls, the revision, the caller's files. Nothing of the host is mounted into it and nothing is
// put into its image, so the engine may be anywhere. PID 1 stages the files, waits for the word, starts the interpreter without
// privileges under Landlock and the filter, and sends what it writes as frames, bounded where it is written. When the leader
// ended, or the executor says so, PID 1 kills all others, reads the counters of its control group, sends what the script left in
// SKILL_OUTPUT and SKILL_ARTIFACTS, and waits to be removed.
//
// The engine removes a container that ended; the executor removes it before it answers, and what neither could remove it goes on
// removing, and looks for at the next start. Containers carry the name of their server, so that nobody else's are touched.
package container
