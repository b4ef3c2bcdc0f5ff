package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// sweep removes the files that dead openings left: unfinished large blobs, and
// lock files. A lock file stays while an unfinished transaction names its
// owner, because only the name shows a person which file to look for.
func (j *Journal) sweep(ctx context.Context) error {
	dead := map[string]bool{} // by owner, as far as it was asked; a dead owner stays dead
	isDead := func(owner string) bool {
		if _, asked := dead[owner]; !asked {
			alive, err := j.Alive(ctx, owner)
			dead[owner] = err == nil && !alive
		}
		return dead[owner]
	}
	if err := j.sweepBlobs(isDead); err != nil {
		return err
	}
	return j.sweepLocks(ctx, isDead)
}

func (j *Journal) sweepBlobs(isDead func(owner string) bool) error {
	return eachFile(j.newBlobs(), func(path, name string) error {
		if owner, _, ok := strings.Cut(name, "."); !ok || !isDead(owner) {
			return nil
		}
		return ignoreMissing(os.Remove(path))
	})
}

func (j *Journal) sweepLocks(ctx context.Context, isDead func(owner string) bool) error {
	return eachFile(j.owners(), func(path, name string) error {
		owner, ok := strings.CutSuffix(name, lockSuffix)
		if !ok || !isDead(owner) {
			return nil
		}
		named, err := j.named(ctx, owner)
		if errors.Is(err, record.ErrDamaged) { // nobody knows what it owns
			return nil
		}
		if err != nil || named {
			return err
		}
		return removeLock(path)
	})
}

func eachFile(dir string, f func(path, name string) error) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := f(filepath.Join(dir, file.Name()), file.Name()); err != nil {
			return err
		}
	}
	return nil
}

// named reports whether an unfinished transaction names the owner.
func (j *Journal) named(ctx context.Context, owner string) (named bool, err error) {
	all, err := j.unfinished(ctx)
	if err != nil {
		return false, explained(err)
	}
	return slices.ContainsFunc(all, func(o journal.Ownership) bool { return o.Owner == owner }), nil
}
