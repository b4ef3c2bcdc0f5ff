// Package verify checks whether an effect is present.
//
// One Verifier has three uses. After a call, a missing effect fails the call.
// In recovery, it determines the effect of a call whose process died. It also
// runs after a revert. It reads resources through a read-only ResourceView, and
// never relies only on the tool's own statements.
package verify
