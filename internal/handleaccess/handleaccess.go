// Package handleaccess gives this module what the packages of handles hide from
// tool authors: the state of the call behind a ToolContext or a Permit, the
// values of secrets, and the file changes of programs.
//
// A handle package cannot export such a function, because every tool could call
// it without authorization. So it installs its internals here when it is
// initialized, and other packages of this module take them from here. A program
// outside this module cannot import this package.
package handleaccess

import (
	"context"
	"fmt"
	"reflect"

	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/verify"
)

// Contexts are the internals of package ctxperm. The type parameters are its
// types, which this package cannot name.
type Contexts[ToolContext, Permit any] struct {
	// New wraps the state of a call.
	New func(*callstate.Call) ToolContext
	// Call returns the call of a context, or nil for the zero context.
	Call func(ToolContext) *callstate.Call
	// PermitCall returns the call of a permit, or nil for one that has ended.
	PermitCall func(Permit) *callstate.Call
	// NewPermit creates a permit for accesses that were decided in another way,
	// such as the change set of a program.
	NewPermit func(op *callstate.Op, accesses ...perm.ResourceAccess) Permit
}

// Secrets are the internals of package secrets.
type Secrets[Secret, Store any] struct {
	// Reveal returns the value of a secret until its call ends.
	Reveal func(Secret) (string, error)
	// Read returns a value without authorization, for reverts, which were
	// permitted earlier.
	Read func(ctx context.Context, s *Store, name string) (string, error)
	// Values returns the values that the runtime removes from records and output.
	Values func(*Store) *callstate.SecretValues
}

// Roots returns the open folder of a root name, or false for an unknown name.
type Roots = func(name string) (disk.Root, bool)

// Files are the internals of package files.
type Files[ChangeSet, DetectedChanges, FilePreImage any] struct {
	// NewChangeSet creates an empty change set for a call whose tool has
	// returned. The caller must close it.
	NewChangeSet func(*callstate.Call) (*ChangeSet, error)
	// Scheme returns the scheme that reverts changes of files. It resolves the
	// root names of the changes in the roots of the reverting process. A change
	// below an unknown root fails with that reason.
	Scheme func(Roots, host.Host) revert.Scheme
	// View returns a verifier's view of the files of one call: the named ones,
	// and those that the call changed. The previous content comes from the
	// changes and the content stored with them.
	View func(roots Roots, h host.Host, keep journal.ContentStore, resources []string, changes []effect.Change) verify.ResourceView

	// Detect compares the pre-images of some paths of a root with their current
	// state, and stores the previous contents. It adds no change for an unchanged
	// path. For a path that cannot be read it returns an error, and adds a change
	// that can only be reverted after a check of the file.
	Detect func(ctx context.Context, t *DetectedChanges, name string, root disk.Root, before []FilePreImage) error
	// Record records all detected changes for a call. They are durable when it
	// returns. It skips a resource that another open transaction claims, returns
	// journal.ErrClaimed for it, and records all others.
	Record func(context.Context, *DetectedChanges, *callstate.Call) error
	// Decide authorizes all recorded changes, like a program's change set. A
	// denied change has already happened, so the call must be reverted.
	Decide func(context.Context, *DetectedChanges, *callstate.Call) error
}

// installed is written only while packages are initialized.
var installed = map[reflect.Type]any{}

// Install sets the internals of one package, which calls it once, when it is
// initialized.
func Install[I any](internals I) { installed[reflect.TypeFor[I]()] = internals }

func of[I any]() I {
	internals, ok := installed[reflect.TypeFor[I]()].(I)
	if !ok {
		panic(fmt.Sprintf("no package has installed %s", reflect.TypeFor[I]()))
	}
	return internals
}

// ContextsOf returns the internals of package ctxperm. It panics for types
// other than those of that package, so its users call it when they are
// initialized.
func ContextsOf[ToolContext, Permit any]() Contexts[ToolContext, Permit] {
	return of[Contexts[ToolContext, Permit]]()
}

// SecretsOf is like ContextsOf, for package secrets.
func SecretsOf[Secret, Store any]() Secrets[Secret, Store] { return of[Secrets[Secret, Store]]() }

// FilesOf is like ContextsOf, for package files.
func FilesOf[ChangeSet, DetectedChanges, FilePreImage any]() Files[ChangeSet, DetectedChanges, FilePreImage] {
	return of[Files[ChangeSet, DetectedChanges, FilePreImage]]()
}

// DriverView is a verifier's view of resources that the handles of one driver
// change.
type DriverView struct {
	Kinds []perm.Kind // kinds of the resources that it reads
	View  func(changes []effect.Change) verify.ResourceView
}

// viewers is written only while packages are initialized.
var viewers []func(driver any) (DriverView, bool)

// InstallView adds a function that returns the view of a driver. A package of
// handles calls it when it is initialized.
func InstallView(of func(driver any) (DriverView, bool)) { viewers = append(viewers, of) }

// ViewOf returns the view of a driver, or false for a driver without one.
func ViewOf(driver any) (DriverView, bool) {
	for _, of := range viewers {
		if v, ok := of(driver); ok {
			return v, true
		}
	}
	return DriverView{}, false
}
