package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
)

// errNotUsed says that a client did not use its tool after all.
var errNotUsed = errors.New("the client did not use its tool: it reported no end, and the files are as before")

// outside lets the client change files outside the workspace, and waits for its
// end. A client that asks the person reports no end if the person declines. Then
// the files are as before, and the call had no effect.
func outside(ctx context.Context, _ ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
	c, err := usedBy(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	in, err := decoded(raw)
	if err != nil {
		return tool.Result{}, tool.NoEffect(err)
	}
	before := in.states()
	r := c.proceed(ctx)
	if r.Unknown != "" && same(before, in.states()) {
		return tool.Result{}, tool.NoEffect(errNotUsed)
	}
	return r.result()
}

// fileState is what tells a changed file from the one before.
type fileState struct {
	there   bool
	file    os.FileInfo
	size    int64
	changed time.Time
}

// states returns the states of the named files. The result is nil if one of
// them cannot be known.
func (in arguments) states() []fileState {
	all := []fileState{}
	for _, name := range in.Paths {
		if !path.IsAbs(name) {
			return nil
		}
		info, err := os.Lstat(filepath.FromSlash(name))
		switch {
		case err == nil && time.Since(info.ModTime()) < time.Second:
			return nil // another write in the same tick of the clock would be hidden
		case err == nil:
			all = append(all, fileState{true, info, info.Size(), info.ModTime()})
		case os.IsNotExist(err):
			all = append(all, fileState{})
		default:
			return nil
		}
	}
	return all
}

// same reports whether files are as before, as far as both states are known.
func same(before, after []fileState) bool {
	if before == nil || len(before) != len(after) {
		return false
	}
	for i, b := range before {
		a := after[i]
		if a.there != b.there || a.there && (!os.SameFile(a.file, b.file) || a.size != b.size || !a.changed.Equal(b.changed)) {
			return false
		}
	}
	return true
}
