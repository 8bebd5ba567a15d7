// Package gate holds the standard gates of the governed run, one file each, and their order.
//
// It owns the yes or no before a run. It leaves resolving, recording and running to package run. Its one invariant:
// a gate that lacks what it needs to decide refuses.
package gate

import (
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Deps is what the standard gates decide by. The zero value refuses every candidate at the first gate.
type Deps struct {
	// Enabled is the feature switch, for the installation and the tenant together; nil refuses.
	Enabled func(sallyport.TenantID) bool
	// Interpreters is the allow-list; empty refuses.
	Interpreters []sallyport.Interpreter
	// MaxArgumentBytes bounds stdin, argv and the names of input files together; zero refuses any.
	MaxArgumentBytes int64
	// MaxInputBytes and MaxInputFiles bound the content and count of input files.
	MaxInputBytes int64
	MaxInputFiles int
	// MaxScriptBytes bounds the script and MaxRevisionBytes all files of its revision.
	MaxScriptBytes   int64
	MaxRevisionBytes int64
	// Secrets says which declared secrets are not set; nil refuses every script that declares one.
	Secrets Secrets
	// Executor is asked what it can enforce now; nil refuses.
	Executor sallyport.Executor
	// RequiredLayers are the layers the policy demands; nil demands every layer the executor knows of.
	RequiredLayers []sallyport.Layer
	// Unattended lets runs begin without a person's yes, where neither the tenant nor the script wants one. False refuses.
	Unattended bool
	// Now is the instant by which grants expire; nil means time.Now.
	Now func() time.Time
}

// Standard lists the gates in the order they run. The order is a contract with callers: the first refusal is the one they
// see. A gate is added with a file of its own and a line here.
func Standard(d Deps) []sallyport.Gate {
	if d.Now == nil {
		d.Now = time.Now
	}
	return []sallyport.Gate{
		featureGate{d.Enabled},
		grantGate{d.Now},
		pinGate{d.Now},
		interpreterGate{d.Interpreters},
		argumentSizeGate{d.MaxArgumentBytes, d.MaxInputBytes, d.MaxInputFiles},
		argumentSchemaGate{},
		pathGate{},
		contentSizeGate{d.MaxScriptBytes, d.MaxRevisionBytes},
		secretGate{d.Secrets},
		isolationGate{d.Executor, d.RequiredLayers},
		confirmGate{d.Unattended},
	}
}
