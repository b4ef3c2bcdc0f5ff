package database

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/verify"
)

// verifyRows looks at each row that the call changed, as it is in the database now.
func verifyRows(ctx context.Context, s verify.Subject) verify.Verdict {
	if len(s.Changes) == 0 {
		if s.Phase == verify.AfterCall {
			return verify.Applied("no row was changed")
		}
		return verify.Unclear("no row was changed")
	}
	if s.World == nil {
		return verify.Unclear("there is no world to look at")
	}
	done, not := 0, 0
	for _, c := range s.Changes {
		version, err := s.World.Version(ctx, c.Resource)
		switch {
		case err != nil:
			return verify.Unclear(err.Error())
		case version == c.After:
			done++
		default:
			not++
		}
	}
	switch {
	case not == 0:
		return verify.Applied(fmt.Sprintf("each of %d rows is as it should be", done))
	case done == 0:
		return verify.Absent("no row is as it should be")
	default:
		return verify.Partial(fmt.Sprintf("%d rows are as they should be, %d are not", done, not))
	}
}
