package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// ticking is a host on which a wait for the next run ends when a test says so.
type ticking struct {
	host.Host
	tick chan time.Duration
}

func (h ticking) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if cause != nil { // of a call
		return h.Host.WithTimeout(ctx, d, cause)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case h.tick <- d:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// collecting counts what was collected, and fails as it is told.
type collecting struct {
	journal.Journal
	fails *atomic.Bool
}

var errAway = errors.New("the disk is away")

func (c collecting) CollectGarbage(ctx context.Context, gone []effect.BlobRef) (journal.GCReport, error) {
	if c.fails.Load() {
		return journal.GCReport{}, errAway
	}
	return c.Journal.CollectGarbage(ctx, gone)
}

// TestRetain: an open runtime drops what is past retention, says once why it could
// not, and begins nothing after Close.
func TestRetain(t *testing.T) {
	h := ticking{host.Real(), make(chan time.Duration)}
	var said bytes.Buffer
	var failing atomic.Bool
	failing.Store(true)
	j := collecting{journal.Memory(), &failing}
	rt, err := agent.New(agent.Journal(j), agent.Host(h), agent.Log(slog.New(slog.NewTextHandler(&said, nil))))
	require.NoError(t, err)
	require.NoError(t, rt.Retain(revert.Retention{}))
	require.ErrorContains(t, rt.Retain(revert.Retention{}), "it was begun before")
	rec := revert.NewRecorder(j, h, "s").In("t")
	require.NoError(t, rec.Write(t.Context(), oneCall(j)))
	require.Equal(t, time.Second, <-h.tick)
	<-h.tick // the first run is over, and the next one begins
	<-h.tick
	require.Equal(t, 1, strings.Count(said.String(), "the disk is away"), said.String())
	failing.Store(false)
	<-h.tick
	<-h.tick
	got, err := rt.Load(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, revert.PhaseErased, got.Calls[0].Phase)
	require.NoError(t, rt.Close())
	select {
	case <-h.tick:
		require.Fail(t, "it goes on after Close")
	default:
	}
}

// TestRetainRefuses what is no retention.
func TestRetainRefuses(t *testing.T) {
	rt, err := agent.New(agent.Journal(journal.Memory()))
	require.NoError(t, err)
	for _, keep := range []revert.Retention{{MaxAge: -1}, {KeepLast: -1}, {DryRun: true}} {
		require.ErrorContains(t, rt.Retain(keep), "agent: retention: ")
	}
	require.NoError(t, rt.Retain(revert.Retention{MaxAge: 240 * time.Hour}))
	require.NoError(t, rt.Close(), "it ends while it waits")
	require.ErrorIs(t, rt.Retain(revert.Retention{}), agent.ErrClosed)
}

// oneCall is a committed transaction of one call.
func oneCall(j journal.Journal) revert.Write {
	return revert.Write{
		Take: journal.OwnerChange{To: journal.Ownership{Txn: "t", Owner: j.Owner()}}, End: true, Durable: true,
		Records: []revert.CallRecord{
			{Body: &record.Begun{Owner: j.Owner()}},
			{Call: "c", Body: &record.Started{Sequence: 1, Key: "k", Tool: record.ToolRef{Name: "tool"}, Input: json.RawMessage("{}"), Class: effect.Pure, Decision: json.RawMessage("{}")}},
			{Call: "c", Body: &record.Done{Output: json.RawMessage("{}")}},
			{Body: &record.Committed{}},
		},
	}
}
