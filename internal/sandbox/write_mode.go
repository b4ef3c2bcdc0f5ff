package sandbox

import "context"

// WriteMode is how the writes of programs to a root are captured, so that the
// policy can decide them and the runtime can revert them.
type WriteMode struct {
	Protections        // protections of a run with this view
	View        View   // Overlay; or Direct, with a comparison of the root before and after
	Why         string // why not Overlay
}

// Probe finds how a root can be shown to programs, by trying it, with the
// written files in a folder upper of the host (empty: in memory). It leaves
// some folders in upper, and starts no program. An error means that programs
// cannot run here at all, or that the root cannot be shown.
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
