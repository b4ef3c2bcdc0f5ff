// Package verify looks whether an effect is in the world.
//
// One Verifier serves three times: after a call, where an effect that is not
// there fails the call; in recovery, where it tells what a call did whose
// process died; and after an undo. It sees the world through a read-only World
// and never through the tool's own words alone.
package verify
