package agent_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/proof/fakemodel"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool/wire"
)

// TestAskNotesTheText checks that a value of a person's text has its origin in the
// calls that follow, and that the text for a delegated session has not: another
// agent can have written that.
func TestAskNotesTheText(t *testing.T) {
	for _, delegated := range []bool{false, true} {
		var last []perm.ValueFacts
		engine := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
			last = r.Call.Values
			return perm.NewDecision(perm.Allow, perm.Details{}), nil
		})
		b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("", call("look", `{"n":4711}`)), spoken("Done.")}, agent.Policy(engine))
		s := b.s
		if delegated {
			var err error
			s, err = s.Delegate(t.Context(), perm.Principal{ID: "helper"})
			require.NoError(t, err)
		}
		_, err := b.loop.Ask(t.Context(), begin(t, s), agent.Conversation{}, "Look at 4711.")
		require.NoError(t, err)
		require.Len(t, last, 1)
		if delegated {
			require.Empty(t, last[0].Origins)
		} else {
			require.Equal(t, []string{"person"}, last[0].Origins)
		}
	}
}

// fullJournal cannot note what a person said.
type fullJournal struct{ journal.Journal }

var errFull = errors.New("no room")

func (j fullJournal) Append(ctx context.Context, w journal.Batch) error {
	for _, e := range w.Entries {
		if e.Header.Kind == record.KindHeard {
			return errFull
		}
	}
	return j.Journal.Append(ctx, w)
}

// TestAskGoesOn checks that a text that cannot be noted ends no
// conversation, and that the log says so without the text.
func TestAskGoesOn(t *testing.T) {
	var log bytes.Buffer
	b := newLoopBench(t, wire.Anthropic, []fakemodel.Turn{spoken("", call("look", `{"n":1}`)), spoken("Done.")},
		agent.Journal(fullJournal{journal.Memory()}), agent.Log(slog.New(slog.NewTextHandler(&log, nil))))
	c, err := b.loop.Ask(t.Context(), begin(t, b.s), agent.Conversation{}, "Look at secret-4711.")
	require.NoError(t, err)
	require.Equal(t, "Done.", c.Answer)
	require.Contains(t, log.String(), "what a person said could not be noted")
	require.False(t, strings.Contains(log.String(), "4711"))
}
