package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
)

// TestSessionsGoOn: a session is found again by its token alone, with who it is,
// what it holds and what it has done; two that go on with it count together.
func TestSessionsGoOn(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	rt, end := o.open()
	s := newSession(t, rt)
	tx := begin(t, s)
	require.NoError(t, reads(ctx, tx))
	require.NoError(t, tx.Commit(ctx))
	token := s.Token()
	require.NotContains(t, fmt.Sprintf("%+v %#v", s, s), strings.SplitN(token, ".", 2)[1], "printing a session tells nobody")
	two, err := rt.ResumeSession(ctx, token)
	require.NoError(t, err)
	require.NoError(t, reads(ctx, begin(t, two)))
	require.Equal(t, 2, fileReads(agent.FactsAt(s, o.host.Now())).Run)
	open := begin(t, s)

	other, _ := o.open()
	_, err = other.ResumeSession(ctx, token)
	require.ErrorIs(t, err, revert.ErrBusy, "it would count on its own")
	want := agent.FactsAt(s, o.host.Now())
	end()

	again, err := other.ResumeSession(ctx, token)
	require.NoError(t, err)
	require.Equal(t, fileReads(want), fileReads(agent.FactsAt(again, o.host.Now())))
	require.Equal(t, s.Principal(), again.Principal())
	require.Equal(t, token, again.Token())
	back, err := other.ResumeTxn(ctx, open.ID())
	require.NoError(t, err)
	require.NoError(t, reads(ctx, back))
	require.Equal(t, 3, fileReads(agent.FactsAt(again, o.host.Now())).Run, "also through a transaction that was found again")
}

func fileReads(f perm.SessionFacts) perm.Counts {
	c, _ := f.Tools.Of("file_read")
	return c.Counts
}

// TestResumedGrantIsFixed checks that ResumeSession refuses options that it
// could not apply.
func TestResumedGrantIsFixed(t *testing.T) {
	rt, _ := newOffice(t).open()
	s := newSession(t, rt)
	for name, opt := range map[string]agent.SessionOption{
		"Grant": agent.Grant(), "Except": agent.Except(perm.Access(perm.Read, "file://workspace/**")), "Expires": agent.Expires(time.Now().Add(time.Hour)),
		"MaxUses": agent.MaxUses(1), "ClientProfile": agent.ClientProfile(perm.ClientFacts{}),
	} {
		_, err := rt.ResumeSession(t.Context(), s.Token(), opt)
		require.ErrorIs(t, err, tool.ErrInvalid, name)
	}
	_, err := rt.ResumeSession(t.Context(), s.Token(), agent.ClaimTimeout(-1))
	require.ErrorContains(t, err, "must not be negative")
	_, err = rt.ResumeSession(t.Context(), s.Token(), agent.ClaimTimeout(time.Second), agent.Heard("https://a.example/"))
	require.NoError(t, err)
}

func TestTokensAreNotGuessed(t *testing.T) {
	ctx := context.Background()
	o := newOffice(t)
	rt, _ := o.open()
	s := newSession(t, rt)
	token := s.Token()
	last := token[len(token)-1:]
	flipped := token[:len(token)-1] + map[bool]string{true: "1", false: "0"}[last == "0"]
	for _, bad := range []string{"", ".", s.ID(), s.ID() + ".", flipped, token + "0", "s_other" + token[len(s.ID()):]} {
		_, err := rt.ResumeSession(ctx, bad)
		require.ErrorIs(t, err, agent.ErrUnknownToken, bad)
	}
	tx := begin(t, s)
	require.NoError(t, reads(ctx, tx))
	for e, err := range rt.Journal().Entries(ctx, journal.Query{}) {
		require.NoError(t, err)
		require.NotContains(t, string(e.Body), strings.SplitN(token, ".", 2)[1], "the journal knows the digest alone")
	}
	_, err := rt.ResumeSession(ctx, token)
	require.NoError(t, err)
}
