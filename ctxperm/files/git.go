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
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/gitguard"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/revert/effect"
)

// approveGit authorizes changes that make git run code later, in a second
// decision together with all changes of the operation. Only now the content of
// the files is known. Nothing is recorded yet, so the call can wait for an
// approval.
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
	call := contexts.PermitCall(p)
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

// gitFacts returns for each edit what it makes git run later, in order; nil if
// nothing.
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

// guard returns the guard that judges changes of the root.
func (f *Files) guard(changes []gitguard.Change) *gitguard.Guard {
	files := gitguard.Files{Read: f.content, List: f.names, Link: f.link}
	dir, err := f.site.root.Path()
	if err != nil {
		dir = "" // unknown: the guard treats each name that leads out of the root as unknown
	} else {
		files.Outside = func(name string) (string, bool, error) { return lookOutside(name, dir) }
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		files.Home = home
	}
	return gitguard.New(dir, files, changes)
}

// lookOutside returns the target of a link of the host, and whether a name is
// another one of the root at dir. It reads only the name itself, not the folders
// above it.
func lookOutside(name, dir string) (target string, is bool, err error) {
	root, err := os.Lstat(dir)
	if err != nil {
		return "", false, errors.New("the folder of the root: " + err.Error()) // it says nothing about the name
	}
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

// inline returns the stored content that an edit displaces.
func inline(a fileEdit) ([]byte, bool) {
	if a.blob == nil {
		return nil, false
	}
	return a.blob.Inline().Get()
}

// content reads the current content of a file of the root.
func (f *Files) content(name string) ([]byte, error) {
	data, err := atMost(func() (io.ReadCloser, error) { return f.site.on().Open(name) })
	if missing(err) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return data, err
}

// names returns the names in a folder of the root.
func (f *Files) names(name string) ([]string, error) {
	all, err := f.site.on().ReadDir(name)
	if missing(err) {
		err = fs.ErrNotExist
	}
	out := make([]string, len(all))
	for i, info := range all {
		out[i] = info.Name
	}
	return out, err
}

// link returns the target of a symbolic link of the root, or "" if the name is
// not that of a link.
func (f *Files) link(name string) (string, error) {
	target, err := f.site.on().Readlink(name)
	switch {
	case missing(err):
		return "", fs.ErrNotExist
	case errors.Is(err, disk.ErrType):
		return "", nil
	}
	return target, err
}

// atMost reads content that is small enough to be judged.
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
