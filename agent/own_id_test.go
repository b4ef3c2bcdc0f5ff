package agent_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
)

// recordingJournal notes what a journal is asked for, and how much it answers.
type recordingJournal struct {
	journal.Journal
	mu    sync.Mutex // never held across a wait
	asked []string
}

func (o *recordingJournal) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, fmt.Sprintf(format, args...))
}

func (o *recordingJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	o.note("call %t txn %t session %t kinds %v most %d", q.Call != "", q.Txn != "", q.Session != "", q.Kinds, q.Limit)
	return o.Journal.Entries(ctx, q)
}

func (o *recordingJournal) OpenContent(ctx context.Context, ref effect.BlobRef) (io.ReadCloser, error) {
	o.note("content")
	return o.Journal.OpenContent(ctx, ref)
}

func (o *recordingJournal) Unfinished(ctx context.Context) ([]journal.Ownership, error) {
	o.note("unfinished")
	return o.Journal.Unfinished(ctx)
}

// TestAnothersID gives a session the IDs of another session. Each method
// answers as for an ID that does not exist, with the same words and the same
// journal reads. Neither the error nor the time reveals that the ID exists.
func TestAnothersID(t *testing.T) {
	ctx := context.Background()
	heard := &recordingJournal{Journal: journal.Memory()}
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", workspace(t)), agent.Policy(allowAll()), agent.Journal(heard))
	mine, theirs := newSession(t, rt), newSession(t, rt)
	open := begin(t, theirs)
	inOpen := invoke(t, open, "file_write", tool.Args{"path": "a.txt", "content": "theirs"}).Call
	ended, err := theirs.Call(ctx, "file_write", tool.Args{"path": "b.txt", "content": strings.Repeat("theirs", 100)})
	require.NoError(t, err)
	undone, err := theirs.Revert(ctx, ended.Txn, revert.Options{})
	require.NoError(t, err)

	ways := []struct {
		name  string
		about func(s *agent.Session, id string) error
	}{
		{"Undo", func(s *agent.Session, id string) error { _, err := s.Revert(ctx, id, revert.Options{}); return err }},
		{"Revert", func(s *agent.Session, id string) error { _, err := s.Revert(ctx, id, revert.Options{}); return err }},
		{"Preview", func(s *agent.Session, id string) error { _, err := s.Preview(ctx, id, revert.Options{}); return err }},
		{"Redo", func(s *agent.Session, id string) error { _, err := s.Redo(ctx, id); return err }},
		{"Open", func(s *agent.Session, id string) error { _, err := s.ResumeTxn(ctx, id); return err }},
		{"Outcome", func(s *agent.Session, id string) error { _, err := s.Outcome(ctx, id); return err }},
		{"Diff", func(s *agent.Session, id string) error { _, err := s.Diff(ctx, id); return err }},
		{"Find", func(s *agent.Session, id string) error { _, err := s.FindTxn(ctx, id); return err }},
		{"Feedback", func(s *agent.Session, id string) error {
			_, err := s.Feedback(ctx, id, provenance.Good, "")
			return err
		}},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			look := func(id string) (words string, looks []string) {
				heard.asked = nil
				err := way.about(mine, id)
				require.ErrorIs(t, err, journal.ErrNotFound)
				return strings.ReplaceAll(err.Error(), id, "ID"), heard.asked
			}
			none, few := look("t_none")
			for name, id := range map[string]string{
				"open": open.ID(), "a call in it": inOpen, "ended": ended.Txn, "a call of that": ended.Call, "its undo": undone.RevertTxn, "a session": theirs.ID(), "nothing": "",
			} {
				if id == "" {
					require.ErrorIs(t, way.about(mine, id), journal.ErrNotFound, "what has no name is not everything")
					continue
				}
				words, looks := look(id)
				require.Equal(t, none, words, name)
				require.Equal(t, few, looks, name)
			}
			for _, one := range few {
				require.Contains(t, one, "most 1", "it reads no more than whose it is")
			}
		})
	}
	txn, err := theirs.FindTxn(ctx, inOpen)
	require.NoError(t, err)
	require.Equal(t, open.ID(), txn)
}
