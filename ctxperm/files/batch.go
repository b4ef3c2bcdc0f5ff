package files

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// DesiredFile is the state of one path as a program left it, stored outside the
// root.
type DesiredFile struct {
	Version // the zero Version: deleted; Add fills in the digest of the content

	Path     string
	Mtime    time.Time                     // time of the last change
	Open     func() (io.ReadCloser, error) // opens the content of a file
	Replaced bool                          // a directory that keeps none of its previous entries
	Copied   bool                          // started as an existing file, under this name or another
	Same     bool                          // is still the previous file or folder of this name
	Inode    uint64                        // desired files with the same number are one file; 0: it has one name
}

// ChangeSet contains all changes that a program proposes, in several roots. The
// policy decides them together. One record holds them. Only then the runtime
// performs each like any other change. One goroutine calls Add for each root,
// then Record, then Perform.
type ChangeSet struct {
	op     *callstate.Op
	permit ctxperm.Permit
	shares []*rootChangeSet
	done   []effect.Change // recorded changes
}

// newChangeSet creates an empty change set for a call whose tool has returned.
// The caller must close it.
func newChangeSet(call *callstate.Call) (*ChangeSet, error) {
	op, err := call.Reenter()
	if err != nil {
		return nil, err
	}
	return &ChangeSet{op: op, permit: contexts.NewPermit(op)}, nil
}

// Close ends the change set.
func (b *ChangeSet) Close() { b.op.Leave() }

// Add surveys the desired files of a program in one root, directories before
// their entries. It stores the content that they would displace. It returns
// ErrConflict for a path that another process touched at or after since,
// because the program may or may not have seen it.
func (b *ChangeSet) Add(ctx context.Context, root string, since time.Time, wanted []DesiredFile) error {
	f, err := Open(contexts.New(b.op.Call()), root)
	if err != nil {
		return err
	}
	s := &rootChangeSet{Files: f, permit: b.permit, times: newFolders(f.site), since: since, wanted: map[string]bool{}, absent: map[string]bool{}, stays: map[string]Version{}, folders: map[string]disk.Info{}}
	if err := s.survey(ctx, wanted); err != nil {
		return err
	}
	b.shares = append(b.shares, s)
	return nil
}

// Record authorizes and records all changes. After an error the caller must not
// call Perform.
func (b *ChangeSet) Record(ctx context.Context) error {
	var changes []effect.Change
	var blobs []journal.Blob
	var accesses []perm.ResourceAccess
	var facts []perm.ChangeFacts
	for _, s := range b.shares {
		git := s.gitFacts(s.altered)
		for i, a := range s.altered {
			in, err := s.draft(ctx, &a)
			if err != nil {
				return err
			}
			s.intents, changes = append(s.intents, *in), append(changes, in.change)
			blobs = append(blobs, a.blobs()...)
			access, fact, err := asked(in.change)
			if err != nil {
				return err
			}
			fact.Git = git[i]
			accesses, facts = append(accesses, access), append(facts, fact)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	call := b.op.Call()
	if call == nil {
		return ctxperm.ErrClosed
	}
	if err := call.AuthorizeChanges(ctx, accesses, facts, func() string { return b.preview(ctx) }); err != nil {
		return err
	}
	b.permit = contexts.NewPermit(b.op, accesses...)
	if err := lockChanged(ctx, b.permit, accesses); err != nil {
		return err
	}
	var err error
	b.done, err = b.permit.RecordChange(ctx, changes, blobs...)
	return err
}

// asked returns the access that a change needs, and the change as a policy sees
// it.
func asked(c effect.Change) (perm.ResourceAccess, perm.ChangeFacts, error) {
	r, err := perm.ParseResource(c.Resource)
	if err != nil {
		return perm.ResourceAccess{}, perm.ChangeFacts{}, err
	}
	action, fact := perm.Write, perm.ChangeFacts{Resource: r.Facts(), Kind: c.Kind}
	if c.Kind == kindDelete {
		action = perm.Delete
	}
	//mutant:token
	if !c.Pre.Same(effect.Absent) {
		fact.Before = string(c.Pre)
	}
	//mutant:token
	if !c.Post.Same(effect.Absent) {
		fact.After = string(c.Post)
	}
	return perm.Access(action, c.Resource), fact, nil
}

// lockChanged locks every resource that changes, in the order of names. So calls that
// lock several resources cannot deadlock with each other.
func lockChanged(ctx context.Context, p ctxperm.Permit, accesses []perm.ResourceAccess) error {
	var texts []string
	for _, a := range accesses {
		if !a.Action.Observes() {
			texts = append(texts, a.Resource)
		}
	}
	slices.Sort(texts)
	for _, text := range slices.Compact(texts) {
		if err := p.LockResource(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// Perform performs the recorded changes. If one fails, it records those that
// were not begun as having had no effect.
func (b *ChangeSet) Perform(ctx context.Context) error {
	at := 0
	for i, s := range b.shares {
		mine := b.done[at : at+len(s.intents)]
		at += len(mine)
		err := s.performAll(ctx, b.permit, mine, s.intents)
		if err == nil {
			continue
		}
		for _, rest := range b.shares[i+1:] {
			for range rest.intents {
				b.permit.RecordVersions(b.done[at].N, b.done[at].Pre)
				at++
			}
		}
		return err
	}
	return nil
}

// Len returns the number of added changes.
func (b *ChangeSet) Len() (n int) {
	for _, s := range b.shares {
		n += len(s.altered)
	}
	return n
}

// mostPreview bounds the bytes of a preview for an approver. It lists the rest
// by name.
const mostPreview = 1 << 20

// preview returns all changes as a patch, for the approver.
func (b *ChangeSet) preview(ctx context.Context) string {
	var p patch
	for _, s := range b.shares {
		for i, in := range s.intents {
			p.add(ctx, in.change, s.name+"/"+in.swap.target, func() (diff.Delta, error) { return s.delta(in, s.altered[i]) })
		}
	}
	return p.String()
}

// patch builds a preview.
type patch struct{ strings.Builder }

func (p *patch) add(ctx context.Context, c effect.Change, name string, delta func() (diff.Delta, error)) {
	if p.Len() >= mostPreview {
		_, _ = fmt.Fprintf(p, "%s of %q, which is not shown: there is too much before it\n", c.Kind, c.Resource)
		return
	}
	d, err := delta()
	if err == nil {
		var t diff.Text
		if t, err = d.Text(ctx, name); err == nil {
			p.WriteString(t.Short)
			return
		}
	}
	_, _ = fmt.Fprintf(p, "%s of %q, which cannot be shown: %v\n", c.Kind, c.Resource, err)
}
