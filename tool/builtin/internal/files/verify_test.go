package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// verdictCheck is a world with the resources that a test sets. It returns an error for
// all others.
type verdictCheck struct {
	version map[string]string // by the last part of a resource
	now     map[string]string
	opening error
	before  string
}

var errDark = errors.New("too dark to see")

func short(resource string) string { return strings.TrimPrefix(resource, "file://workspace/") }

func (w verdictCheck) Version(_ context.Context, resource string) (string, error) {
	if v, ok := w.version[short(resource)]; ok {
		return v, nil
	}
	return "", errDark
}

func (w verdictCheck) Open(_ context.Context, resource string) (io.ReadCloser, error) {
	if c, ok := w.now[short(resource)]; ok {
		return io.NopCloser(strings.NewReader(c)), nil
	}
	return nil, w.opening
}

func (w verdictCheck) Before(context.Context, string) (io.ReadCloser, error) {
	if w.before == "" {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(w.before)), nil
}

// TestVerifyInDoubt: what cannot be looked at is never said to be done, nor said
// to be undone; what is half done is said to be that.
func TestVerifyInDoubt(t *testing.T) {
	const edit, write, move = `{"path":"a","old":"1","new":"2"}`, `{"path":"a","content":"2"}`, `{"from":"b","to":"a"}`
	both := []verify.Change{{Resource: "file://workspace/a", Before: "absent", After: "v2"}, {Resource: "file://workspace/b", Before: "v2", After: "absent"}}
	one := []verify.Change{{Resource: "file://workspace/a", Before: "v1", After: "v2"}}
	for name, tc := range map[string]struct {
		tool, input string
		world       verdictCheck
		changes     []verify.Change
		want        effect.Presence
		finding     string
	}{
		"an edit that was done":           {"file_edit", edit, verdictCheck{before: "1", now: map[string]string{"a": "2"}}, nil, effect.PresenceApplied, "exactly the content"},
		"an edit that was not":            {"file_edit", edit, verdictCheck{before: "1", now: map[string]string{"a": "1"}}, nil, effect.PresenceAbsent, "another content"},
		"an edit to the same":             {"file_edit", `{"path":"a","old":"1","new":"1"}`, verdictCheck{}, nil, effect.PresenceApplied, "changes nothing"},
		"an edit of what was lost":        {"file_edit", edit, verdictCheck{now: map[string]string{"a": "2"}}, nil, effect.PresenceUnknown, "content from before"},
		"an edit that could not be":       {"file_edit", edit, verdictCheck{before: "3", now: map[string]string{"a": "2"}}, nil, effect.PresenceUnknown, "does not occur"},
		"a write nobody can open":         {"file_write", write, verdictCheck{opening: errDark}, nil, effect.PresenceUnknown, "too dark"},
		"a write nobody can stat":         {"file_write", write, verdictCheck{now: map[string]string{"a": "2"}}, one, effect.PresenceUnknown, "too dark"},
		"a delete nobody can see":         {"file_delete", `{"path":"a"}`, verdictCheck{}, nil, effect.PresenceUnknown, "too dark"},
		"a move to where nobody sees":     {"file_move", move, verdictCheck{}, nil, effect.PresenceUnknown, "too dark"},
		"a move from where nobody sees":   {"file_move", move, verdictCheck{version: map[string]string{"a": "v2"}}, nil, effect.PresenceUnknown, "too dark"},
		"a move that was begun":           {"file_move", move, verdictCheck{version: map[string]string{"a": "v2", "b": "v2"}}, nil, effect.PresenceAbsent, "under its old name"},
		"a move with nothing recorded":    {"file_move", move, verdictCheck{version: map[string]string{"a": "v2", "b": "absent"}}, nil, effect.PresenceUnknown, "nothing was recorded"},
		"a move that was done":            {"file_move", move, verdictCheck{version: map[string]string{"a": "v2", "b": "absent"}}, both, effect.PresenceApplied, "each entry"},
		"a move that was half done":       {"file_move", move, verdictCheck{version: map[string]string{"a": "v2", "b": "v2"}}, both, effect.PresencePartial, "some entries"},
		"a move that somebody else did":   {"file_move", move, verdictCheck{version: map[string]string{"a": "v3", "b": "v3"}}, both, effect.PresenceAbsent, "no entry"},
		"a move of which half is dark":    {"file_move", move, verdictCheck{version: map[string]string{"a": "v2"}}, both, effect.PresenceUnknown, "too dark"},
		"a copy to nothing":               {"file_copy", move, verdictCheck{version: map[string]string{"a": "absent", "b": "v2"}}, nil, effect.PresenceAbsent, "under the new name"},
		"a directory that was there":      {"dir_create", `{"path":"a"}`, verdictCheck{version: map[string]string{"a": "d"}, opening: disk.ErrType}, nil, effect.PresenceApplied, "there already"},
		"a directory nobody can see":      {"dir_create", `{"path":"a"}`, verdictCheck{}, nil, effect.PresenceUnknown, "too dark"},
		"a directory nobody can open":     {"dir_create", `{"path":"a"}`, verdictCheck{version: map[string]string{"a": "d"}, opening: errDark}, nil, effect.PresenceUnknown, "too dark"},
		"a directory as it was recorded":  {"dir_create", `{"path":"a"}`, verdictCheck{version: map[string]string{"a": "v2"}}, one, effect.PresenceApplied, "each entry"},
		"a directory with other bits":     {"dir_create", `{"path":"a"}`, verdictCheck{version: map[string]string{"a": "v9"}}, one, effect.PresenceAbsent, "no entry"},
		"a write to a path that is none":  {"file_write", `{"path":"../a","content":"2"}`, verdictCheck{}, nil, effect.PresenceUnknown, "no world"},
		"an edit at a path that is none":  {"file_edit", `{"path":"../a","old":"1","new":"2"}`, verdictCheck{}, nil, effect.PresenceUnknown, "outside its root"},
		"a move to a path that is none":   {"file_move", `{"from":"b","to":"../a"}`, verdictCheck{}, nil, effect.PresenceUnknown, "no world"},
		"a delete of a path that is none": {"file_delete", `{"path":"../a"}`, verdictCheck{}, nil, effect.PresenceUnknown, "no world"},
	} {
		t.Run(name, func(t *testing.T) {
			v, ok := byName()[tc.tool].Verifier().Get()
			require.True(t, ok)
			got := verify.Run(t.Context(), v, verify.Subject{Phase: verify.Recovery, Input: json.RawMessage(tc.input), Resources: tc.world, Changes: tc.changes})
			require.Equal(t, tc.want, got.Presence(), "%v", got.Findings())
			require.Contains(t, strings.Join(got.Findings(), "\n"), tc.finding)
		})
	}
	for name, tl := range byName() {
		if v, ok := tl.Verifier().Get(); ok {
			got := verify.Run(t.Context(), v, verify.Subject{Phase: verify.Recovery, Input: json.RawMessage(`{"mode":7}`), Resources: verdictCheck{}})
			require.Equal(t, effect.PresenceUnknown, got.Presence(), "%s: what was never an input", name)
		}
	}
}
