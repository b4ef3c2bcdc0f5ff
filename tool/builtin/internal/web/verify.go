package web

import (
	"context"

	"github.com/remit-dev/remit/verify"
)

// verify asks the service whether what the call made or changed is there.
func lookAgain(ctx context.Context, s verify.Subject) verify.Verdict {
	if s.Resources == nil {
		return verify.CannotTell("there is no world to look at")
	}
	changes := s.Changes
	if len(changes) == 0 {
		return verify.Absent("nothing was sent")
	}
	last := changes[len(changes)-1] // about what was made, where the answer named it
	now, err := s.Resources.Version(ctx, last.Resource)
	if err != nil {
		return verify.CannotTell(err.Error())
	}
	switch {
	case now == last.Before:
		return verify.Absent("the service has it as it was before")
	case now == last.After, last.After == "": // where the answer was lost, the world says only what it can tell
		return verify.Applied("the service has it as the call left it")
	case s.Phase == verify.AfterRevert && now == "absent":
		return verify.Absent("the service has it no more")
	case s.Phase == verify.AfterRevert:
		return verify.CannotTell("the service has another version of it than the call left")
	}
	return verify.Partial("another client changed it after the call")
}
