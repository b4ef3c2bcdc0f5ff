package pipeline

import (
	"maps"
	"slices"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

func viewChanges(changes []effect.Change) []tool.Change {
	out := make([]tool.Change, 0, len(changes))
	for _, c := range changes {
		//mutant:token
		if c.Pre.Same(c.Post) {
			continue // unchanged in the end
		}
		out = append(out, tool.Change{Resource: c.Resource, Kind: c.Kind, Before: viewToken(c.Pre), After: viewToken(c.Post)})
	}
	return out
}

func viewToken(t effect.Token) *effect.Token {
	if !t.Known() || t == effect.Absent {
		return nil
	}
	return &t
}

// clone returns a copy that shares no memory with o.
func cloneOutcome(o tool.Outcome) tool.Outcome {
	o.Output, o.Input, o.Changes, o.RevertResults = slices.Clone(o.Output), slices.Clone(o.Input), slices.Clone(o.Changes), slices.Clone(o.RevertResults)
	if o.Decision != nil {
		d := *o.Decision
		d.Reasons, d.Hints = slices.Clone(d.Reasons), slices.Clone(d.Hints)
		if d.Remember != nil {
			d.Remember = &perm.Remember{Scope: d.Remember.Scope, Keys: slices.Clone(d.Remember.Keys)}
		}
		o.Decision = &d
	}
	if o.Verdict != nil {
		o.Verdict = &tool.Verdict{Presence: o.Verdict.Presence, Findings: slices.Clone(o.Verdict.Findings)}
	}
	if o.Error != nil {
		e := *o.Error
		o.Error = &e
	}
	o.Result = cloneOf(o.Result)
	return o
}

// cloneOf returns a copy that shares no memory with r.
func cloneOf(r tool.Result) tool.Result {
	r.Labels, r.Requires = slices.Clone(r.Labels), slices.Clone(r.Requires)
	r.JSON, r.Meta, r.Sources, r.Parts = slices.Clone(r.JSON), maps.Clone(r.Meta), slices.Clone(r.Sources), slices.Clone(r.Parts)
	for i, p := range r.Parts {
		r.Parts[i].Data = slices.Clone(p.Data)
	}
	return r
}
