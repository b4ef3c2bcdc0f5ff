package pipeline

import (
	"fmt"
	"time"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/tool"
)

// CheckLimits returns an error for limits that the runtime cannot keep.
func CheckLimits(l tool.Limits) error {
	for name, n := range map[string]int{"MaxInput": l.MaxInput, "MaxOutput": l.MaxOutput} {
		if n > toolaccess.MaxBytes {
			return fmt.Errorf("tool.Limits.%s is %d bytes; at most %d can be kept in a record", name, n, toolaccess.MaxBytes)
		}
	}
	if l.MaxDepth > toolaccess.MaxDepth {
		return fmt.Errorf("tool.Limits.MaxDepth is %d levels; at most %d can be kept in a record", l.MaxDepth, toolaccess.MaxDepth)
	}
	return nil
}

func fileLimits(l tool.Limits) callstate.FileLimits {
	return callstate.FileLimits{Bytes: l.MaxFile, Entries: l.MaxEntries}
}

// documentLimits returns the limits of an input, and of a result's JSON except for
// its size.
func documentLimits(l tool.Limits) canon.Limits {
	return canon.Limits{Bytes: l.MaxInput, Depth: l.MaxDepth}
}

// WithDefaults replaces zero fields by their defaults.
func WithDefaults(l tool.Limits) tool.Limits {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	if l.MaxInput <= 0 {
		l.MaxInput = 16 << 20
	}
	if l.MaxOutput <= 0 {
		l.MaxOutput = 32 << 20
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = toolaccess.MaxDepth
	}
	set(&l.ApprovalTimeout, 24*time.Hour)
	set(&l.Timeout, 2*time.Minute)
	set(&l.VerifyTimeout, 30*time.Second)
	set(&l.RevertTimeout, 2*time.Minute)
	set(&l.GracePeriod, 30*time.Second)
	return l
}
