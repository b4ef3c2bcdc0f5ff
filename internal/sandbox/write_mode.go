package sandbox

import "context"

// WriteMode is how the writes of programs to a root can be had, so that they can be
// looked at, decided and taken back.
type WriteMode struct {
	Protections        // what a run has that sees the root in this way
	View        View   // Overlay; or Direct, with a look at the root before and after
	Why         string // why not Overlay
}

// Probe finds how a root can be shown to programs, by doing it, with written files
// in a folder upper of the host (empty: in memory), where it leaves some folders. It
// starts no program. An error means that programs cannot run here at all, or that
// the root cannot be shown.
func Probe(ctx context.Context, shim Shim, root, upper string) (WriteMode, error) {
	name, err := Foreign(ctx, root)
	if err != nil {
		return WriteMode{}, err
	}
	why := ""
	if name != "" {
		why = name + " belongs to an owner or group that no program here may give a file to, so an overlay could not copy it"
	}
	return probeWriteMode(ctx, shim, root, upper, why)
}
