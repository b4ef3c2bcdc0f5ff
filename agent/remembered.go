package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// rememberFor is the default validity of a remembered approval.
const rememberFor = 24 * time.Hour

// rememberedApproval is a remembered approval and the session that it was given
// in.
type rememberedApproval struct {
	*record.Remembered
	session string
}

// remembering makes the record of a remembered approval. It covers the accesses
// of the approval request.
func (rt *Runtime) remembering(ask ctxperm.ApprovalRequest, ref record.ToolRef, input, by string, r ctxperm.RememberScope) (*record.Remembered, error) {
	out := &record.Remembered{
		ID: host.NewID(rt.services.Host, "g_"), Tool: ref, Principal: ask.Principal.ID, Chain: ask.Principal.Chain, Always: r.Always,
		By: by, From: record.CallRef{Txn: ask.Txn, Call: ask.Call}, Access: []record.Access{}, Reasons: []string{},
	}
	switch {
	case ask.Remember.Scope == perm.RememberNever:
		return nil, fmt.Errorf("the policy does not let an approval of call %s cover later calls: %w", ask.Call, tool.ErrInvalid)
	case r.For < 0:
		return nil, fmt.Errorf("an approval cannot be remembered for %s: %w", r.For, tool.ErrInvalid)
	case r.For == 0:
		r.For = rememberFor
	}
	out.Keys = ask.Remember.Keys
	out.Expires = rt.services.Host.Now().Add(r.For)
	for _, a := range ask.Accesses {
		out.Access = append(out.Access, record.Access{Action: string(a.Action), Resource: a.Resource, Method: a.Method})
		// Only the input of such a call, or its keys, say what it does.
		r.SameInput = r.SameInput || len(out.Keys) == 0 && a.Action == perm.Call && strings.HasPrefix(a.Resource, "tool://")
	}
	if r.SameInput {
		out.InputDigest = input
	}
	for _, reason := range ask.Reasons {
		out.Reasons = append(out.Reasons, reason.Text)
	}
	return out, nil
}

// answers reports whether a remembered approval covers an approval request now.
func (k rememberedApproval) answers(ask ctxperm.ApprovalRequest, input string, now time.Time) bool {
	if !now.Before(k.Expires) || (!k.Always && k.session != ask.Session) ||
		k.Tool.Name != ask.Tool || k.Tool.Digest != ask.ToolDigest || k.Tool.Settings != ask.Settings ||
		k.Principal != ask.Principal.ID || !slices.Equal(k.Chain, ask.Principal.Chain) ||
		(k.InputDigest != "" && k.InputDigest != input) || len(ask.Accesses) == 0 {
		return false
	}
	for _, r := range ask.Reasons {
		if !slices.Contains(k.Reasons, r.Text) {
			return false
		}
	}
	if ask.Remember.Scope != "" || len(k.Keys) > 0 { // the policy says what the call does
		return perm.Remember{Scope: perm.RememberSession, Keys: k.Keys}.Covers(ask.Remember)
	}
	set, err := perm.NewSet(k.accesses()...)
	return err == nil && !slices.ContainsFunc(ask.Accesses, func(a perm.ResourceAccess) bool { return !set.Allows(a) })
}

func (k rememberedApproval) accesses() (out []perm.ResourceAccess) {
	for _, a := range k.Access {
		out = append(out, perm.ResourceAccess{Action: perm.Action(a.Action), Resource: a.Resource, Method: a.Method})
	}
	return out
}

// approvalStore holds the remembered approvals of a session. It implements
// Memory of pipeline.Config.
type approvalStore struct{ s *Session }

// Recall returns the newest remembered approval that covers the request.
func (m approvalStore) Recall(ctx context.Context, ask ctxperm.ApprovalRequest, input string) (*record.Approval, error) {
	all, err := m.s.rt.register.validApprovals(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if k.answers(ask, input, m.s.rt.services.Host.Now()) {
			return &record.Approval{By: k.By, Grant: k.ID}, nil
		}
	}
	return nil, nil
}

// Keep records a remembered approval.
func (m approvalStore) Keep(ctx context.Context, ask ctxperm.ApprovalRequest, ref record.ToolRef, input, by string, r ctxperm.RememberScope) error {
	body, err := m.s.rt.remembering(ask, ref, input, by, r)
	if err != nil {
		return err
	}
	return m.s.rt.answer(ctx, m.s.id, revert.CallRecord{Body: body})
}

// GrantInfo describes a grant for people.
type GrantInfo struct {
	ID        string                `json:"id"`
	Kind      string                `json:"kind"`  // session: a session's grant; remembered: a remembered approval
	State     string                `json:"state"` // standing, revoked, expired, used_up
	Principal string                `json:"principal"`
	Session   string                `json:"session,omitempty"` // for a remembered approval: the only session that it is valid in
	Tool      string                `json:"tool,omitempty"`
	Accesses  []perm.ResourceAccess `json:"accesses"`
	SameInput bool                  `json:"same_input,omitempty"`
	Keys      []string              `json:"keys,omitempty"` // of a remembered approval: only calls that the policy asks about with no other keys
	From      string                `json:"from,omitempty"` // the session that delegated it, or the call of the approval request
	By        string                `json:"by,omitempty"`
	Why       string                `json:"why,omitempty"`
	Expires   time.Time             `json:"expires,omitzero"`
	Uses      int                   `json:"uses,omitempty"`
	Used      int                   `json:"used,omitempty"`
	Revoked   string                `json:"revoked,omitempty"` // by whom and why
}

// Grants returns the remembered approvals and the grants that were delegated or
// are bounded, oldest first, also those that have ended.
func (rt *Runtime) Grants(ctx context.Context) ([]GrantInfo, error) {
	if err := rt.register.look(ctx); err != nil {
		return nil, err
	}
	out := []GrantInfo{}
	q := journal.Query{Kinds: []record.Kind{record.KindSession, record.KindRemembered}}
	for e, err := range rt.journal.Entries(ctx, q) {
		if err != nil {
			return nil, err
		}
		rec, err := record.Unseal(e)
		if err != nil {
			return nil, err
		}
		info, shown, err := rt.grantInfo(ctx, rec)
		if err != nil {
			return nil, err
		}
		if shown {
			out = append(out, info)
		}
	}
	return out, nil
}

func (rt *Runtime) grantInfo(ctx context.Context, rec record.Record) (info GrantInfo, shown bool, err error) {
	switch b := rec.Body.(type) {
	case *record.Remembered:
		k := rememberedApproval{Remembered: b}
		info = GrantInfo{
			ID: b.ID, Kind: "remembered", Principal: b.Principal, Tool: b.Tool.Name, Accesses: k.accesses(), SameInput: b.InputDigest != "", Keys: b.Keys,
			From: b.From.Call, By: b.By, Why: b.Why, Expires: b.Expires,
		}
		if !b.Always {
			info.Session = rec.Session
		}
	case *record.Session:
		if b.Parent == "" && b.Uses == 0 && b.Expires.IsZero() {
			return info, false, nil
		}
		s, err := rt.sessionByID(ctx, rec.Session)
		if err != nil {
			return info, false, err
		}
		info = GrantInfo{
			ID: rec.Session, Kind: "session", Principal: s.principal.ID, Accesses: s.state.grant.Set().Accesses(),
			From: b.Parent, Expires: b.Expires, Uses: b.Uses,
		}
		if b.Uses > 0 {
			if info.Used, err = rt.started(ctx, rec.Session); err != nil {
				return info, false, err
			}
		}
	}
	if info.Accesses == nil {
		info.Accesses = []perm.ResourceAccess{}
	}
	revoked, why, err := rt.register.gone(ctx, info.ID)
	switch {
	case err != nil:
		return info, false, err
	case revoked:
		info.State, info.Revoked = "revoked", why
	case !info.Expires.IsZero() && !rt.services.Host.Now().Before(info.Expires):
		info.State = "expired"
	case info.Uses > 0 && info.Used >= info.Uses:
		info.State = "used_up"
	default:
		info.State = "standing"
	}
	return info, true, nil
}
