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

// credentialStore is the file in which git stores passwords. Masks that hide it
// also hide such secrets in the configuration of a repository.
const credentialStore = ".git-credentials"

// secretive reports whether a git folder must be hidden: its configuration
// holds credentials, and the policy masks those. Git does not work with a
// partly visible repository, so the whole folder is hidden.
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

// isGitFolder reports whether a directory can hold a git configuration: a git
// folder, or the folder of a submodule or a worktree in one.
func isGitFolder(dir string) bool {
	all := strings.Split(strings.ToLower(dir), "/")
	at := slices.IndexFunc(all, func(s string) bool { return strings.HasSuffix(s, ".git") })
	return at >= 0 && (at == len(all)-1 || slices.Contains([]string{"modules", "worktrees"}, all[at+1]))
}

// holdsCredentials reports whether a configuration may hold credentials. It is
// true for one that is unreadable or too long.
func (s *search) holdsCredentials(name string) bool {
	f, err := s.root.Open(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, gitguard.MaxSize+1))
	return err != nil || len(data) > gitguard.MaxSize || gitguard.HoldsCredentials(data)
}
