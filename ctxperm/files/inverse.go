package files

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// schemeName is the Change.Scheme of every change of this package.
const schemeName = "file"

// The kinds of change.
const (
	kindCreate = "create"
	kindWrite  = "write"
	kindDelete = "delete"
	kindMkdir  = "mkdir"
	kindTouch  = "touch" // only the time of a file
)

// inverse is Change.Inverse: the stage name, by which recovery finds leftovers,
// and the pre-image. Will is the post-image. Only the changes of a revert can
// be redone from it; in all others it serves explanations.
type inverse struct {
	Stage string  `json:"stage"`
	Was   *record `json:"was,omitempty"`
	Will  *record `json:"will,omitempty"`

	Folder *folderTimes `json:"folder,omitempty"`
}

// record is the stored form of a state.
type record struct {
	Type      string          `json:"type"`
	Owner     string          `json:"owner,omitempty"` // user:group
	Perm      string          `json:"perm,omitempty"`
	Mtime     *mtime          `json:"mtime,omitempty"`
	Content   string          `json:"content,omitempty"` // digest
	Kept      *effect.BlobRef `json:"kept,omitempty"`
	Splice    *splice         `json:"splice,omitempty"` // content, by that before the change
	Target    []byte          `json:"target,omitempty"`
	Xattrs    [][2]string     `json:"xattrs,omitempty"`
	HardLink  []byte          `json:"twin,omitempty"`      // path of a name that shares the file
	Elsewhere int             `json:"elsewhere,omitempty"` // number of the file's names that the root does not show
}

// with adds another name of the file.
func (r *record) with(twin string) *record {
	if r != nil && twin != "" {
		r.HardLink = []byte(twin)
	}
	return r
}

// mtime has no limit of years, unlike the JSON form of time.Time.
type mtime struct {
	Sec  int64 `json:"sec"`
	Nsec int64 `json:"nsec"`
}

func (v Version) record() *record {
	if v.Type == "" {
		return nil
	}
	r := &record{Type: v.Type, Owner: v.Owner.String(), Content: v.Content, Target: []byte(v.Target), Xattrs: pairs(v.Xattrs)}
	if v.Type != typeLink {
		r.Perm = octal(v.Perm)
	}
	return r
}

func (s state) record(kept *journal.Blob) *record {
	r := s.Version.record()
	if r == nil {
		return nil
	}
	at := mtimeOf(s.info.Mtime)
	r.Mtime = &at
	if kept != nil {
		ref := kept.Ref()
		r.Kept = &ref
	}
	return r
}

func (r *record) version() (Version, error) {
	if r == nil {
		return Version{}, nil
	}
	v := Version{Type: r.Type, Content: r.Content, Target: string(r.Target)}
	var err error
	if r.Perm != "" {
		if v.Perm, err = parseOctal(r.Perm); err != nil {
			return Version{}, err
		}
	}
	owner, err := disk.ParseOwner(r.Owner)
	if v.Owner = Owner(owner); err != nil {
		return Version{}, err
	}
	v.Xattrs, err = unpair(r.Xattrs)
	return v, err
}

func (r *record) hardLink() string {
	if r == nil {
		return ""
	}
	return string(r.HardLink)
}

func (r *record) time() time.Time {
	if r == nil || r.Mtime == nil {
		return time.Time{}
	}
	return r.Mtime.time()
}

// image returns the image that restores the recorded state.
func (r *record) image(ctx context.Context, keep journal.ContentStore) (fileImage, error) {
	v, err := r.version()
	if err != nil {
		return fileImage{}, err
	}
	img := fileImage{Version: v, mtime: r.time()}
	img.hardLink = r.hardLink()
	if v.Type != typeFile {
		return img, nil
	}
	if r.Kept == nil {
		return fileImage{}, errors.New("its content was not kept")
	}
	img.open = func() (io.ReadCloser, error) { return keep.OpenContent(ctx, *r.Kept) }
	return img, nil
}

// rewritten returns the image of a file with new content from memory, or of a
// new file.
func rewritten(was Version, data []byte) fileImage {
	img := fileImage{Version: was.unprivileged(), fresh: was.Type == ""}
	img.Type, img.Content = typeFile, string(canon.SumBytes(data))
	img.data, img.open = data, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return img
}

// newStage returns a random stage name. It differs from every other one, also
// of another process, before the change has a number.
func newStage(h host.Host) string {
	var id [16]byte
	h.Random(id[:])
	return StagePrefix + hex.EncodeToString(id[:])
}

func (v inverse) encode() (json.RawMessage, error) {
	raw, err := canon.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("inverse: %w", err)
	}
	return raw, nil
}

// readInverse accepts only stage names of newStage, because a file with that
// name is moved and removed.
func readInverse(c effect.Change) (inverse, error) {
	var v inverse
	if c.Scheme != schemeName {
		return v, fmt.Errorf("a change of scheme %q is not one of files", c.Scheme)
	}
	if err := canon.Decode(c.Inverse, &v); err != nil {
		return v, fmt.Errorf("inverse of change %d: %w", c.N, err)
	}
	id, ok := strings.CutPrefix(v.Stage, StagePrefix)
	if raw, err := hex.DecodeString(id); !ok || err != nil || len(raw) != 16 || hex.EncodeToString(raw) != id {
		return v, fmt.Errorf("inverse of change %d: %q is not a stage name", c.N, v.Stage)
	}
	return v, nil
}

// change describes the step from one state to another.
func change(resource, stage string, was, will *record, pre, post effect.Token, folder *folderTimes) (effect.Change, error) {
	inv, err := inverse{Stage: stage, Was: was, Will: will, Folder: folder}.encode()
	c := effect.Change{Scheme: schemeName, Resource: resource, Pre: pre, Post: post, Inverse: inv}
	switch {
	case will == nil:
		c.Kind = kindDelete
	//mutant:token
	case was != nil && pre.Same(post):
		c.Kind = kindTouch
	case was != nil:
		c.Kind = kindWrite
	case will.Type == typeDir:
		c.Kind = kindMkdir
	default:
		c.Kind = kindCreate
	}
	for _, r := range []*record{was, will} {
		if r != nil && r.Kept != nil {
			c.Blobs = append(c.Blobs, *r.Kept)
		}
		if r != nil && r.Splice != nil {
			c.Blobs = append(c.Blobs, r.Splice.Kept)
		}
	}
	return c, err
}
