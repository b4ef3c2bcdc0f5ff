package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/verify"
)

// verifyWrite compares the file with the content that was asked for.
func verifyWrite(ctx context.Context, s verify.Subject) verify.Verdict {
	var in writeIn
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.Unclear(err.Error())
	}
	return compare(ctx, s, in.Path, []byte(in.Content))
}

// verifyEdit does the edit again, on the content from before, and compares.
func verifyEdit(ctx context.Context, s verify.Subject) verify.Verdict {
	var in editIn
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.Unclear(err.Error())
	}
	if s.World == nil {
		return verify.Unclear("there is no world to look at")
	}
	if in.Old == in.New {
		return verify.Applied("the edit changes nothing")
	}
	resource, err := resourceOf(in.Path)
	if err != nil {
		return verify.Unclear(err.Error())
	}
	was, err := slurp(s.World.Before(ctx, resource))
	if err != nil {
		return verify.Unclear("the content from before cannot be read: " + err.Error())
	}
	want, err := handle.Replace(was, in.Old, in.New, in.All)
	if err != nil {
		return verify.Unclear(err.Error())
	}
	return compare(ctx, s, in.Path, want)
}

// verifyDelete looks whether the file is gone.
func verifyDelete(ctx context.Context, s verify.Subject) verify.Verdict {
	var in struct {
		Path string `json:"path"`
	}
	if err := canon.Decode(s.Input, &in); err != nil {
		return verify.Unclear(err.Error())
	}
	resource, err := resourceOf(in.Path)
	if err != nil || s.World == nil {
		return verify.Unclear("there is no world to look at")
	}
	switch version, err := s.World.Version(ctx, resource); {
	case err != nil:
		return verify.Unclear(err.Error())
	case version == "absent":
		return verify.Applied("the file is gone")
	default:
		return verify.Absent("the file is still there")
	}
}

func compare(ctx context.Context, s verify.Subject, path string, want []byte) verify.Verdict {
	resource, err := resourceOf(path)
	if err != nil || s.World == nil {
		return verify.Unclear("there is no world to look at")
	}
	got, err := slurp(s.World.Open(ctx, resource))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return verify.Absent("the file is not there")
	case err != nil:
		return verify.Unclear(err.Error())
	case bytes.Equal(got, want):
		return verify.Applied("the file has exactly the content that was asked for")
	default:
		return verify.Absent("the file has another content")
	}
}

func resourceOf(path string) (string, error) {
	r, err := perm.FileResource(root, path)
	return r.String(), err
}

func slurp(r io.ReadCloser, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(r, handle.MaxFile+1))
	return data, errors.Join(err, r.Close())
}
