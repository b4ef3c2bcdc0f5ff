package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/verify"
)

// verifyWrite compares the file with the content that was asked for.
func verifyWrite(ctx context.Context, s verify.Subject) verify.Verdict {
	var in writeIn
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.CannotTell(err.Error())
	}
	return compare(ctx, s, in.root(), in.Path, []byte(in.Content))
}

// verifyEdit does the edit again, on the content from before, and compares.
func verifyEdit(ctx context.Context, s verify.Subject) verify.Verdict {
	var in editIn
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.CannotTell(err.Error())
	}
	if s.Resources == nil {
		return verify.CannotTell("there is no world to look at")
	}
	if in.Old == in.New {
		return verify.Applied("the edit changes nothing")
	}
	resource, err := resourceOf(in.root(), in.Path)
	if err != nil {
		return verify.CannotTell(err.Error())
	}
	was, err := slurp(s.Resources.Before(ctx, resource))
	if err != nil {
		return verify.CannotTell("the content from before cannot be read: " + err.Error())
	}
	want, err := handle.Replace(was, in.Old, in.New, in.All)
	if err != nil {
		return verify.CannotTell(err.Error())
	}
	return compare(ctx, s, in.root(), in.Path, want)
}

// verifyDelete looks whether the file is gone.
func verifyDelete(ctx context.Context, s verify.Subject) verify.Verdict {
	var in deleteIn
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.CannotTell(err.Error())
	}
	resource, err := resourceOf(in.root(), in.Path)
	if err != nil || s.Resources == nil {
		return verify.CannotTell("there is no world to look at")
	}
	switch version, err := s.Resources.Version(ctx, resource); {
	case err != nil:
		return verify.CannotTell(err.Error())
	case version == "absent":
		return verify.Applied("the file is gone")
	default:
		return verify.Absent("the file is still there")
	}
}

// verifyMove looks whether the one is gone and the other there, entry by entry.
func verifyMove(ctx context.Context, s verify.Subject) verify.Verdict {
	return verifyPair(ctx, s, true)
}

// verifyCopy looks whether the copy is there, entry by entry.
func verifyCopy(ctx context.Context, s verify.Subject) verify.Verdict {
	return verifyPair(ctx, s, false)
}

func verifyPair(ctx context.Context, s verify.Subject, moved bool) verify.Verdict {
	var in moveInput
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.CannotTell(err.Error())
	}
	to, is := there(ctx, s, in.root(), in.To)
	if !is.known {
		return to
	}
	if len(s.Changes) > 0 {
		return entryByEntry(ctx, s)
	}
	from, was := there(ctx, s, in.root(), in.From)
	switch {
	case !was.known:
		return from
	case !is.there:
		return verify.Absent("nothing is under the new name")
	case moved && was.there:
		return verify.Absent("it is still under its old name")
	default:
		return verify.CannotTell("something is under the new name, and nothing was recorded that tells what")
	}
}

// verifyMkdir looks whether there is a directory.
func verifyMkdir(ctx context.Context, s verify.Subject) verify.Verdict {
	var in mkdirIn
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.CannotTell(err.Error())
	}
	v, is := there(ctx, s, in.root(), in.Path)
	switch {
	case !is.known:
		return v
	case !is.there:
		return verify.Absent("the directory is not there")
	case len(s.Changes) > 0:
		return entryByEntry(ctx, s)
	}
	resource, err := resourceOf(in.root(), in.Path)
	if err != nil {
		return verify.CannotTell(err.Error())
	}
	r, err := s.Resources.Open(ctx, resource)
	switch {
	case err == nil:
		_ = r.Close()
		return verify.Absent("a file is there")
	case errors.Is(err, disk.ErrType):
		return verify.Applied("the directory was there already")
	default:
		return verify.CannotTell(err.Error())
	}
}

type pathState struct{ known, there bool }

// there looks whether a path stands for anything; the verdict says why that
// cannot be known.
func there(ctx context.Context, s verify.Subject, root, path string) (verify.Verdict, pathState) {
	resource, err := resourceOf(root, path)
	if err != nil || s.Resources == nil {
		return verify.CannotTell("there is no world to look at"), pathState{}
	}
	version, err := s.Resources.Version(ctx, resource)
	if err != nil {
		return verify.CannotTell(err.Error()), pathState{}
	}
	return verify.Verdict{}, pathState{known: true, there: version != "absent"}
}

// entryByEntry looks at each resource that the call was to change.
func entryByEntry(ctx context.Context, s verify.Subject) verify.Verdict {
	done, not := 0, 0
	for _, c := range s.Changes {
		version, err := s.Resources.Version(ctx, c.Resource)
		switch {
		case err != nil:
			return verify.CannotTell(err.Error())
		case version == c.After:
			done++
		default:
			not++
		}
	}
	switch {
	case not == 0:
		return verify.Applied("each entry is as it should be")
	case done == 0:
		return verify.Absent("no entry is as it should be")
	default:
		return verify.Partial("some entries are as they should be, some are not")
	}
}

func compare(ctx context.Context, s verify.Subject, root, path string, want []byte) verify.Verdict {
	resource, err := resourceOf(root, path)
	if err != nil || s.Resources == nil {
		return verify.CannotTell("there is no world to look at")
	}
	r, err := s.Resources.Open(ctx, resource)
	var got []byte
	if err == nil {
		defer func() { _ = r.Close() }()
		got, err = upTo(len(want), r)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return verify.Absent("the file is not there")
	case err != nil:
		return verify.CannotTell(err.Error())
	case bytes.Equal(got, want):
		return asRecorded(ctx, s, resource, r)
	default:
		return verify.Absent("the file has another content")
	}
}

// asRecorded looks at a file whose content is the one that was asked for, and may
// have been before: its bits and attributes tell what the call did.
func asRecorded(ctx context.Context, s verify.Subject, resource string, read io.Reader) verify.Verdict {
	const right = "the file has exactly the content that was asked for"
	first, last := "", ""
	for _, c := range s.Changes {
		if c.Resource != resource {
			continue
		}
		if first == "" {
			first = c.Before
		}
		last = c.After
	}
	if last == "" {
		return verify.Applied(right) // it had it before
	}
	version, err := versionOf(ctx, s, resource, read)
	switch {
	case err != nil:
		return verify.CannotTell(err.Error())
	case version == last:
		return verify.Applied(right)
	case version == first:
		return verify.Absent("the file is as it was before, which had the same content")
	default:
		return verify.Partial(right + ", and other bits or attributes than it was given")
	}
}

func resourceOf(root, path string) (string, error) {
	r, err := perm.FileResource(root, path)
	return r.String(), err
}

// slurp reads all of what was kept, which is bounded by what is kept.
func slurp(r io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// versionOf returns the version of a file that was read to its end. The reader
// knows it if nothing has changed the file meanwhile. If it does not, the file
// is read again.
func versionOf(ctx context.Context, s verify.Subject, resource string, read io.Reader) (string, error) {
	if r, ok := read.(interface {
		Version(ctx context.Context) (string, bool)
	}); ok {
		if version, known := r.Version(ctx); known {
			return version, nil
		}
	}
	return s.Resources.Version(ctx, resource)
}

// upTo reads as much as tells whether there is more than n bytes: anything may
// stand in a file by now.
func upTo(n int, r io.Reader) ([]byte, error) {
	data := make([]byte, n+1)
	got, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return data[:got], err
}
