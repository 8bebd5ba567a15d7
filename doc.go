// Package sallyport is the vocabulary of Sallyport: the nouns, the contracts and the one catalogue
// of error codes that every other package speaks in.
//
// It leaves storage, transport and execution to others and imports the standard library only, so an
// application that brings an own executor or gate links nothing else. Its one invariant: the zero
// value of every type here refuses.
//
// The story of one execution, in the order of the nouns. A [Principal] of a [Tenant] names a [Skill],
// one of its [Revision]s and a script [Component]. Resolved to exact bytes this is a [Candidate]. Every
// [Gate] looks at the Candidate and gives a [Refusal] or nothing. A [Grant] holds the Pin: the [Digest] of
// the revision a reviewer read. When all gates passed, an [Entry] is durable in the audit trail and an
// [Execution] is open, a slot is taken and the [Executor] is called exactly once with an [ExecRequest]
// under [Limits]. Its [Result], with [Usage] and [Isolation], closes the Execution and the trail, and the
// caller reads it in an [Envelope].
//
// Where to go next: package run for the pipeline, package gate for the gates, package executor/bubblewrap
// for the default executor, package server to embed all of it.
package sallyport
