// Package bubblewrap is the default executor: it runs one approved script in a sandbox of its own on this host.
//
// It owns everything around that script: the identity it runs under, its namespaces, files, limits, its death and what
// is left of it. It leaves approval, slots, records and retries to its caller, and the script's bytes as they are. Its
// one invariant: nothing of a tenant runs before the sandbox is closed around it, and nothing of a run is alive, mounted
// or on disk after its result was returned.
//
// One run, in order. A uid that no living process has is leased, the revision is materialised by digest, fresh control
// groups are made and limited. Bubblewrap is started with an empty environment and its options by descriptor, from one
// long-lived thread that is already inside those groups, so everything after it is born limited. Bubblewrap builds
// namespaces and mounts, then becomes our own PID 1 (helper/), which reads one configuration, copies the revision to a
// private writable folder, starts the interpreter without privileges, under Landlock and a seccomp filter, on as many
// processors as its quota, and reports the raw wait status. When the leader ended, or the supervisor says so (at the deadline, or when the group's counter has reached the CPU budget), PID 1 kills
// all others, streams what the script left in SKILL_OUTPUT and SKILL_ARTIFACTS, and ends. Then the group is killed, its
// counters are read and it is removed.
//
// There are two plans, and the probe of [Executor.Capabilities] takes the first that works: bubblewrap under the run's uid
// in a user namespace, or, for root on a host that refuses those, bubblewrap as root, with PID 1 taking on the run's uid
// before it stages anything. Results name the plan, the seccomp profile and the layers that were active. What a host lacks
// is a layer that is missing, which the policy of the installation judges; only Landlock, a second lock, is then not listed
// at all.
package bubblewrap
