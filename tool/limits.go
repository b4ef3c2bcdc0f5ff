package tool

import "time"

// Limits bound one call. A zero field takes its default.
type Limits struct {
	MaxInput        int           // bytes of an input; default 16 MiB
	MaxOutput       int           // bytes of a result's canonical form; default 32 MiB
	MaxDepth        int           // depth of arrays and objects in an input, and in a result's JSON; default and maximum 120
	MaxFile         int           // bytes of a file that is read or written whole; default 32 MiB
	MaxEntries      int           // files and directories that one operation changes; default 10,000
	ApprovalTimeout time.Duration // until an approval request expires; default 24 hours
	Answer          time.Duration // how long a running call waits for one answer, beside its own time; default: as long as it may run
	Timeout         time.Duration // of Execute, if the tool has no timeout; default 2 minutes
	VerifyTimeout   time.Duration // of a Verify, beside what each change adds; default 30 seconds
	RevertTimeout   time.Duration // of a Revert; default 2 minutes
	GracePeriod     time.Duration // for operations in flight when a call must end; default 30 seconds
	ClaimTimeout    time.Duration // how long a call waits for a claim of another open transaction, within its timeout; default: it fails at once
}
