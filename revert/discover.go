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

// ChangeFinder is an optional interface of a Scheme whose handle takes a
// snapshot before another program acts for a call, and finds the changes
// afterwards.
type ChangeFinder interface {
	Scheme
	// Find returns the changes of a call whose process died before it recorded
	// them, from the notes of the call. It returns nothing for a call without
	// such notes, or that recorded all its changes.
	Find(ctx context.Context, c Call, keep journal.ContentStore) (DiscoveredChanges, error)
}

// DiscoveredChanges is the result of ChangeFinder.Find.
type DiscoveredChanges struct {
	Changes []effect.Change // changes with present effects that the call has not recorded
	Blobs   []journal.Blob
	Lost    string // why some changes cannot be found any more; empty: all are found
	Release func() // drops the snapshot once the changes are durable; nil: there is none
}

// discover adds changes that only the resources tell to the records of an
// interrupted call. They may not be changes of the call: other actors may have
// changed the resources since. So recovery reverts nothing by itself, and a
// person must do it.
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

// doubt ends a call as unknown with the discovered changes, in one step.
func (r *Reverter) doubt(ctx context.Context, rec Recorder, c *Call, s RecoveredCall, found DiscoveredChanges) (RecoveredCall, error) {
	why := "the process died while another program acted for the call"
	if n := len(found.Changes); n > 0 {
		why += fmt.Sprintf(", and %d files differ from before, and other processes may have changed some of them since: check them; a revert of the call restores the earlier content", n)
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
