package revert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ChangeFinder is what a Scheme can also be whose handle keeps how resources were while somebody else acts for a call, and
// tells what was changed only afterwards.
type ChangeFinder interface {
	Scheme
	// Find looks what a call changed whose process died before it was told, by what the call noted. It returns nothing
	// for a call that noted nothing, or that had told everything.
	Find(ctx context.Context, c Call, keep journal.ContentStore) (DiscoveredChanges, error)
}

// DiscoveredChanges is what a Finder found.
type DiscoveredChanges struct {
	Changes []effect.Change // their effects are there; the call has not told them
	Blobs   []journal.Blob
	Lost    string // why something cannot be told any more; empty: that is all
	Release func() // drops what was kept, once the changes are durable; nil: nothing was
}

// discover adds what only the world tells of an interrupted call to its records. What it finds is not the call's for sure: others
// may have been at it since. So nothing is taken back by itself, and it takes a person to do so.
func (r *Reverter) discover(ctx context.Context, w Environment, rec Recorder, c *Call, s RecoveredCall) (_ RecoveredCall, over bool, err error) {
	var all DiscoveredChanges
	var releases []func()
	for _, scheme := range w.Schemes {
		f, ok := scheme.(ChangeFinder)
		if !ok {
			continue
		}
		found, err := f.Find(ctx, *c, r.Journal)
		if err != nil {
			return s, false, err
		}
		all.Changes, all.Blobs = append(all.Changes, found.Changes...), append(all.Blobs, found.Blobs...)
		if found.Lost != "" {
			all.Lost = found.Lost
		}
		if found.Release != nil {
			releases = append(releases, found.Release)
		}
	}
	if len(all.Changes) > 0 || all.Lost != "" {
		over = true
		s, err = r.doubt(ctx, rec, c, s, all)
	}
	if err == nil {
		for _, release := range releases {
			release()
		}
	}
	return s, over, err
}

// doubt ends a call with what was found of it, in one step.
func (r *Reverter) doubt(ctx context.Context, rec Recorder, c *Call, s RecoveredCall, found DiscoveredChanges) (RecoveredCall, error) {
	why := "its process died while somebody acted for it"
	if n := len(found.Changes); n > 0 {
		why += fmt.Sprintf(", and %d files are not as they were before, some of which others may have changed since: look at them; taking the call back brings back what was there before", n)
	}
	if found.Lost != "" {
		why += "; " + found.Lost
	}
	s.Outcome, s.Why = PhaseUnknown, why
	//mutant:barrier
	write := Write{Blobs: found.Blobs, Durable: true}
	for i, ch := range found.Changes {
		ch.N = len(c.Changes) + i + 1
		write.Records = append(write.Records, CallRecord{Call: c.Ref.Call, Body: &record.Changed{Change: ch}})
		//mutant:lease
		write.Claims = append(write.Claims, ch.Resource)
	}
	write.Records = append(write.Records, CallRecord{Call: c.Ref.Call, Body: &record.Unknown{Status: "unknown", Why: why}})
	for {
		err := rec.Write(ctx, write)
		var held *journal.ClaimedError
		if !errors.As(err, &held) {
			return s, err
		}
		//mutant:none whoever holds it found it as it is: the plan of an undo tells
		write.Claims = slices.DeleteFunc(write.Claims, func(claim string) bool { return claim == held.Resource })
	}
}
