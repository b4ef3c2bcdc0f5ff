package verify

import (
	"context"
	"fmt"
)

// Changes compares every recorded change of the call with the current versions.
// It is a Verifier for tools whose effects are the changes of their handles. It
// returns Applied if each resource is as the call left it, also if the call
// changed none. It returns Absent if each is as before the call, and Partial
// otherwise.
func Changes(ctx context.Context, s Subject) Verdict {
	switch {
	case len(s.Changes) == 0 && s.Phase == AfterCall:
		return Applied("the call changed nothing")
	case len(s.Changes) == 0:
		return Absent("no change of it is recorded, and none happens before it is")
	}
	if s.Resources == nil {
		return CannotTell("there is no world to look at")
	}
	last, first := map[string]string{}, map[string]string{}
	for _, c := range s.Changes {
		if _, seen := first[c.Resource]; !seen {
			first[c.Resource] = c.Before
		}
		last[c.Resource] = c.After
	}
	var applied, absent, same int
	var findings []string
	for _, c := range s.Changes {
		left, ok := last[c.Resource]
		if !ok {
			continue // already checked
		}
		delete(last, c.Resource)
		now, err := s.Resources.Version(ctx, c.Resource)
		switch {
		case err != nil:
			return CannotTell(fmt.Sprintf("%s cannot be looked at: %v", c.Resource, err))
		case now == left && left == first[c.Resource]: // only its time changed, or it was changed and restored
			same++
		case now == left:
			applied++
		case now == first[c.Resource]:
			absent++
		default:
			findings = append(findings, c.Resource+" is neither as it was nor as the call left it")
		}
	}
	switch {
	case len(findings) > 0 || applied > 0 && absent > 0:
		return Partial(append(findings, fmt.Sprintf("%d are as the call left them, %d as they were before", applied, absent))...)
	case absent > 0 || applied == 0 && same > 0 && s.Phase == AfterRevert:
		return Absent()
	default:
		return Applied()
	}
}
