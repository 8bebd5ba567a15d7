package remote

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
)

// Capabilities is what every usable runner provides, with each of them as a place: a run goes to one that has what it needs. A
// layer that only some have is missing only where one of them says so itself, as everywhere. It waits for the runners' first
// answers only; after that it returns at once.
func (e *Executor) Capabilities(ctx context.Context) sallyport.Capabilities {
	e.await(ctx)
	found := sallyport.Capabilities{Layers: []sallyport.Layer{}, Features: []sallyport.Feature{}}
	var faults []string
	var missing []sallyport.Layer
	for _, p := range e.peers {
		s, _ := p.now()
		if !s.usable() {
			faults = append(faults, p.name+" "+s.fault())
			continue
		}
		found.Places = append(found.Places, sallyport.Capabilities{
			Available: true, Layers: s.said.Layers, Missing: s.said.Missing, Features: s.said.Features,
			Reason: short(s.said.Reason), Remedy: short(s.said.Remedy),
		})
		missing = append(missing, s.said.Missing...)
		if !found.Available {
			found.Available = true
			found.Layers, found.Features = slices.Clone(s.said.Layers), slices.Clone(s.said.Features)
		} else {
			found.Layers, found.Features = both(found.Layers, s.said.Layers), both(found.Features, s.said.Features)
		}
		if len(s.said.Missing) > 0 && found.Reason == "" {
			found.Reason, found.Remedy = short(s.said.Reason), short(s.said.Remedy)
		}
	}
	if !found.Available {
		found.Reason, found.Remedy = strings.Join(faults, "; "), "start a runner, or see what sallyport executors says about each"
		return found
	}
	slices.Sort(missing)
	found.Missing = slices.Compact(missing)
	return found
}

func both[T comparable](a, b []T) []T {
	return slices.DeleteFunc(a, func(x T) bool { return !slices.Contains(b, x) })
}

func without[T comparable](a, b []T) []T {
	var left []T
	for _, x := range a {
		if !slices.Contains(b, x) {
			left = append(left, x)
		}
	}
	return left
}

// candidate is a runner that can serve a run, and the message for it.
type candidate struct {
	peer    *peer
	message runnerwire.Run
	load    float64
}

// candidates lists the runners that can serve req, the least loaded first.
func (e *Executor) candidates(ctx context.Context, req sallyport.ExecRequest) ([]candidate, error) {
	e.await(ctx)
	var list []candidate
	var faults []string
	for i := range e.peers {
		p := e.peers[(uint64(i)+e.turn.Load())%uint64(len(e.peers))]
		s, inFlight := p.now()
		fault := s.fault()
		if fault == "" {
			fault = lacks(s, req)
		}
		if fault != "" {
			faults = append(faults, p.name+" "+fault)
			continue
		}
		message := runnerwire.FromRequest(req, s.extended)
		if s.extended {
			message.RequiredLayers = req.RequiredLayers
		}
		// What others use is in its own count, what we use may not be there yet.
		load := float64(max(inFlight, s.said.Used)) / float64(cmp.Or(max(s.said.Slots, 0), 8))
		list = append(list, candidate{p, message, load})
	}
	e.turn.Add(1)
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.load, b.load) })
	if len(list) == 0 {
		slices.Sort(faults)
		return nil, &sallyport.Error{
			Op: "remote.execute", Code: sallyport.CodeRunnerUnreachable, Message: "no runner can serve this run: " + strings.Join(faults, "; "),
		}
	}
	return list, nil
}

// lacks names what the run needs and the runner does not provide; empty when there is nothing.
func lacks(s state, req sallyport.ExecRequest) string {
	if missing := without(req.RequiredLayers, s.said.Layers); len(missing) > 0 {
		return "does not enforce " + string(missing[0])
	}
	for _, need := range []struct {
		feature sallyport.Feature
		needed  bool
	}{
		{sallyport.FeatureArgv, len(req.Argv) > 0},
		{sallyport.FeatureRevision, sallyport.NeedsRevision(req.Files, req.ScriptPath)},
		{sallyport.FeatureFiles, len(req.Inputs) > 0},
		{sallyport.FeatureCPUTime, req.Limits.CPUTime > 0},
		{sallyport.FeatureSecrets, len(req.Secrets) > 0},
	} {
		if need.needed && !slices.Contains(s.said.Features, need.feature) {
			return "cannot provide " + string(need.feature)
		}
	}
	if s.extended {
		return ""
	}
	if !runnerwire.FromRequest(req, false).Plain() {
		return "takes text only, and the script or its input is not valid UTF-8"
	}
	return ""
}
