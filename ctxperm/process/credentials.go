package process

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/gitguard"
	"github.com/remit-dev/remit/perm"
)

// credentialStore is the file in which git keeps passwords. Masks that hide it hide
// the same secrets in the configuration of a repository.
const credentialStore = ".git-credentials"

// secretive reports whether a directory is a git folder that has to be hidden: its
// configuration holds credentials, and the policy masks those. Git does not work
// with a repository of which it sees only a part, so all of it is hidden.
func (s *search) secretive(dir string) bool {
	if !isGitFolder(dir) {
		return false
	}
	r, err := perm.FileResource(s.name, path.Join(path.Dir(dir), credentialStore))
	if err != nil || !s.masked(r) {
		return false
	}
	return s.holdsCredentials(path.Join(dir, "config")) || s.holdsCredentials(path.Join(dir, "config.worktree"))
}

// isGitFolder reports whether a directory may hold a configuration of git: a git
// folder, or what belongs to a submodule or a worktree in one.
func isGitFolder(dir string) bool {
	all := strings.Split(strings.ToLower(dir), "/")
	at := slices.IndexFunc(all, func(s string) bool { return strings.HasSuffix(s, ".git") })
	return at >= 0 && (at == len(all)-1 || slices.Contains([]string{"modules", "worktrees"}, all[at+1]))
}

// holdsCredentials reports whether a configuration holds credentials. One that
// cannot be read, or is too long to be one, may.
func (s *search) holdsCredentials(name string) bool {
	f, err := s.root.Open(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, gitguard.MaxSize+1))
	return err != nil || len(data) > gitguard.MaxSize || gitguard.HoldsCredentials(data)
}
