package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/gitguard"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
)

// approveGit asks for changes that make git run code later, once more and with all
// that the operation changes: only now is known what the files hold. The first of
// them is not yet recorded, so the call can wait for an approval.
func (f *Files) approveGit(ctx context.Context, p ctxperm.Permit, changes []effect.Change, intents []plannedEdit, altered []fileEdit) error {
	git := f.gitFacts(altered)
	accesses, facts, err := allAsked(changes)
	if err != nil {
		return err
	}
	runs := false
	for i, g := range git {
		facts[i].Git = g
		runs = runs || g != nil
	}
	if !runs {
		return nil
	}
	call := p.CallState(callstate.NewKey())
	if call == nil {
		return ctxperm.ErrClosed
	}
	return call.AuthorizeChanges(ctx, accesses, facts, func() string {
		var shown patch
		for i, in := range intents {
			shown.add(ctx, in.change, f.name+"/"+in.swap.target, func() (diff.Delta, error) { return f.delta(in, altered[i]) })
		}
		return shown.String()
	})
}

// gitFacts returns for each alteration what it makes git run later, in their order;
// nil where that is nothing.
func (f *Files) gitFacts(altered []fileEdit) []*perm.GitFacts {
	changes := make([]gitguard.Change, len(altered))
	for i, a := range altered {
		changes[i] = gitguard.Change{
			Path: a.path, Type: a.img.Type, Was: a.was.Type, Exec: a.img.Perm&0o111 != 0,
			After: func() ([]byte, error) { return atMost(a.img.open) },
			Before: func() ([]byte, error) {
				if data, ok := inline(a); ok {
					return data, nil
				}
				return f.content(a.path)
			},
		}
	}
	g := f.guard(changes)
	out := make([]*perm.GitFacts, len(changes))
	for i, c := range changes {
		if found := g.Facts(c); found != nil {
			out[i] = &perm.GitFacts{Kind: found.Kind, Keys: found.Keys, New: found.New}
		}
	}
	return out
}

// guard returns what judges changes of the root.
func (f *Files) guard(changes []gitguard.Change) *gitguard.Guard {
	files := gitguard.Files{Read: f.content, List: f.names, Link: f.link}
	dir, err := f.site.root.Path()
	if err != nil {
		dir = "" // unknown: the guard takes each name that leads out of the root for one that it does not know
	} else if info, err := os.Lstat(dir); err == nil {
		files.Outside = func(name string) (string, bool, error) { return lookOutside(name, info) }
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		files.Home = home
	}
	return gitguard.New(dir, files, changes)
}

// lookOutside returns where a link of the host leads, and whether a name is the root's.
// It looks at nothing but the name, so that a folder above counts as it is.
func lookOutside(name string, root fs.FileInfo) (target string, is bool, err error) {
	info, err := os.Lstat(name)
	switch {
	case missing(err):
		return "", false, fs.ErrNotExist
	case err != nil:
		return "", false, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err = os.Readlink(name)
	}
	return target, os.SameFile(info, root), err
}

// inline returns the content that was kept of what an alteration displaces.
func inline(a fileEdit) ([]byte, bool) {
	if a.blob == nil {
		return nil, false
	}
	return a.blob.Inline()
}

// content reads a file of the root as it is now.
func (f *Files) content(name string) ([]byte, error) {
	data, err := atMost(func() (io.ReadCloser, error) { return f.site.root.Open(name) })
	if missing(err) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return data, err
}

// names returns the names in a folder of the root.
func (f *Files) names(name string) ([]string, error) {
	all, err := f.site.root.ReadDir(name)
	if missing(err) {
		err = fs.ErrNotExist
	}
	out := make([]string, len(all))
	for i, info := range all {
		out[i] = info.Name
	}
	return out, err
}

// link returns where a symbolic link of the root leads. There is no target if the
// name is that of another file.
func (f *Files) link(name string) (string, error) {
	target, err := f.site.root.Readlink(name)
	switch {
	case missing(err):
		return "", fs.ErrNotExist
	case errors.Is(err, disk.ErrType):
		return "", nil
	}
	return target, err
}

// atMost reads what is small enough to be judged.
func atMost(open func() (io.ReadCloser, error)) ([]byte, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, gitguard.MaxSize+1))
	if err == nil && len(data) > gitguard.MaxSize {
		err = gitguard.ErrTooLarge
	}
	return data, err
}
