package callview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/diff"
	"github.com/remit-dev/remit/tool"
)

// Preview is what a pending call would change in the files as they are now: a
// patch, or a note about its absence.
type Preview struct {
	Patch string
	Note  string
}

// fileArgs has the arguments of the file tools that a preview needs.
type fileArgs struct {
	Root    string `json:"root"`
	Path    string `json:"path"`
	Content string `json:"content"`
	Old     string `json:"old"`
	New     string `json:"new"`
	All     bool   `json:"all"`
}

// PreviewCall compares a file with the result of a call of a file tool. Other
// tools, and other declarations of the file tools, have no preview. Folders has
// the folder of each root.
func PreviewCall(ctx context.Context, folders map[string]Folder, tools tool.Registry, name, digest string, input json.RawMessage) Preview {
	t, known := tools.Get(name)
	var in fileArgs
	switch {
	case !known || t.Digest() != digest:
		return Preview{}
	case name != "file_write" && name != "file_edit" && name != "file_delete":
		return Preview{}
	case canon.Decode(input, &in) != nil && json.Unmarshal(input, &in) != nil:
		return Preview{}
	}
	if in.Root == "" {
		in.Root = workspaceRoot
	}
	folder, ok := folders[in.Root]
	if !ok {
		return Preview{Note: "where root " + in.Root + " is now is not known: no difference can be shown"}
	}
	if folder.Missing != "" {
		return Preview{Note: "no difference can be shown: " + folder.Missing}
	}
	was, err := readUpTo(folder.Path, in.Path, diff.MaxText)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Preview{Note: "no difference can be shown: " + plainError(err)}
	}
	is, gone := []byte(in.Content), false
	switch name {
	case "file_edit":
		n := bytes.Count(was, []byte(in.Old))
		if in.Old == "" || n == 0 || n > 1 && !in.All {
			return Preview{Note: fmt.Sprintf("the edit does not fit the file as it is now: its text occurs %s", occurrences(n))}
		}
		is = bytes.ReplaceAll(was, []byte(in.Old), []byte(in.New))
	case "file_delete":
		gone = true
		if !there {
			return Preview{Note: "the file is not there now"}
		}
	}
	if there && !gone && bytes.Equal(was, is) {
		return Preview{Note: "the content of the file would not change"}
	}
	d := diff.Delta{Before: fileVersion(was, there), After: fileVersion(is, !gone)}
	text, err := d.Text(ctx, strings.TrimPrefix(in.Root+"/", workspaceRoot+"/")+in.Path)
	if err != nil || text.Lost != "" {
		return Preview{Note: "no difference can be shown: " + strings.TrimSpace(text.Lost)}
	}
	return Preview{Patch: text.Short}
}

func occurrences(n int) string {
	switch n {
	case 0:
		return "nowhere in it"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// fileVersion returns a version of a file with this content.
func fileVersion(content []byte, there bool) diff.ResourceVersion {
	if !there {
		return diff.ResourceVersion{}
	}
	s := diff.ResourceVersion{Type: "file", Mode: "0644", Digest: string(canon.SumBytes(content))}
	return s.From(func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
}

// readUpTo reads a file below a folder. It never reads outside the folder.
func readUpTo(folder, path string, most int64) (data []byte, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > most:
		return nil, fmt.Errorf("the file has %d bytes, more than %d", info.Size(), most)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if data, err = io.ReadAll(io.LimitReader(f, most+1)); err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("the file has more than %d bytes", most)
	}
	return data, err
}

// Digest identifies the whole of what a preview shows.
func (w Preview) Digest() string {
	return string(canon.SumBytes([]byte(w.Patch + "\x00" + w.Note)))
}

// Truncate returns the first lines of the patch, and counts the others in the
// note.
func (w Preview) Truncate(most int) Preview {
	n := strings.Count(w.Patch, "\n")
	if n <= most {
		return w
	}
	at := 0
	for range most {
		at += strings.IndexByte(w.Patch[at:], '\n') + 1
	}
	return Preview{Patch: w.Patch[:at], Note: fmt.Sprintf("%d more lines of the difference are left out", n-most)}
}

// workspaceRoot is the root that a path without a root belongs to.
const workspaceRoot = "workspace"

// plainError returns the cause of an error without the path, which the caller
// names.
func plainError(err error) string {
	var pathed *fs.PathError
	if errors.As(err, &pathed) {
		return pathed.Err.Error()
	}
	return err.Error()
}
