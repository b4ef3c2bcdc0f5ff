package approve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
)

// minPrefix is the minimum length of the start of an ID, without its kind.
const minPrefix = 4

// pendingID returns the ID of the call that an ID or its start names. The start
// must match exactly one pending call.
func pendingID(ctx context.Context, j journal.Journal, id string) (string, error) {
	if _, _, err := revert.LoadCall(ctx, j, id); !errors.Is(err, journal.ErrNotFound) {
		return id, err
	}
	if short, isCall := strings.CutPrefix(id, "c_"); !isCall {
		return id, nil
	} else if len(short) < minPrefix {
		return "", cli.UsageProblem(fmt.Sprintf("%q is too short for the beginning of an id: give c_ and at least %d more characters", id, minPrefix))
	}
	all, err := callview.FindPending(ctx, j)
	if err != nil {
		return id, err
	}
	var found []string
	for _, w := range all {
		if strings.HasPrefix(w.Call.Ref.Call, id) {
			found = append(found, w.Call.Ref.Call)
		}
	}
	switch len(found) {
	case 0:
		return id, nil
	case 1:
		return found[0], nil
	}
	return "", cli.UsageProblem(fmt.Sprintf("%q is the beginning of %d calls that wait: %s", id, len(found), strings.Join(found, ", ")))
}
