package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// policyPage counts the decisions of the newest transactions by their rules.
type policyPage struct {
	Rules  []ruleLine
	Looked int
	Damage string
}

// ruleLine is a rule that gave a reason.
type ruleLine struct {
	Effect, Kind, Text, At string
	Calls                  int
	Last                   string // address of the newest call
}

// policy shows which rules decided, and how often.
func (c *Console) policy(r *http.Request) (string, page, error) {
	ctx, d := r.Context(), policyPage{}
	rules := map[ruleLine]*ruleLine{}
	for e, err := range c.Runtime.Journal().Entries(ctx, journal.Query{Kinds: []record.Kind{record.KindBegun}, Newest: true, Limit: maxLooked}) {
		if err == nil {
			err = c.countRules(ctx, e.Header.Txn, rules)
		}
		if err != nil && (e.Pos == 0 || !errors.Is(err, record.ErrDamaged)) {
			return "", page{}, err
		}
		if err != nil {
			d.Damage = err.Error()
			continue
		}
		d.Looked++
	}
	for _, l := range rules {
		d.Rules = append(d.Rules, *l)
	}
	slices.SortFunc(d.Rules, func(a, b ruleLine) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.At, b.At), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Effect, b.Effect))
	})
	return "policy", page{Title: "Policy", Place: "policy", Data: d}, nil
}

func (c *Console) countRules(ctx context.Context, txn string, rules map[ruleLine]*ruleLine) error {
	t, err := c.Runtime.Load(ctx, txn)
	if err != nil {
		return err
	}
	for _, call := range slices.Backward(t.Calls) {
		for _, reason := range reasonsOf(call) {
			l := rules[reason]
			if l == nil {
				first := reason
				l, first.Last = &first, call.Ref.Call
				rules[reason] = l
			}
			l.Calls++
		}
	}
	return nil
}

// reasonsOf returns each reason of the decision about a call once.
func reasonsOf(call *revert.Call) (all []ruleLine) {
	a := callview.AttemptOf(call)
	if a.Decode(call.Ref.Call) != nil || a.Decision == nil {
		return nil
	}
	kind := map[string]string{"allow": "good", "deny": "bad"}[a.Decision.Effect]
	for _, why := range a.Decision.Reasons {
		l := ruleLine{Effect: a.Decision.Effect, Kind: cmp.Or(kind, "doubt"), Text: why.Text, At: why.At}
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}
