package files

import (
	"io"

	"github.com/remit-dev/remit/internal/gitguard"
	"github.com/remit-dev/remit/perm"
)

// gitFacts returns for each alteration of a share what it makes git run later, in
// their order; nil where that is nothing.
func (s *share) gitFacts() []*perm.GitFacts {
	changes := make([]gitguard.Change, len(s.altered))
	for i, a := range s.altered {
		changes[i] = gitguard.Change{
			Path: a.path, Type: a.img.Type, Existed: a.was.Type == typeFile,
			After:  func() ([]byte, error) { return atMost(a.img.open) },
			Before: func() ([]byte, error) { return s.content(a.path) },
		}
	}
	dir, err := s.site.root.Path()
	if err != nil {
		dir = "/" // nothing leads into a root that is not there
	}
	g := gitguard.New(dir, s.content, changes)
	out := make([]*perm.GitFacts, len(changes))
	for i, c := range changes {
		if f := g.Facts(c); f != nil {
			out[i] = &perm.GitFacts{Kind: f.Kind, Keys: f.Keys, New: f.New}
		}
	}
	return out
}

// content reads a file of the root as it is now.
func (s *share) content(name string) ([]byte, error) {
	return atMost(func() (io.ReadCloser, error) { return s.site.root.Open(name) })
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
