//go:build linux

package killtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
)

// oracle compares the world with the journal.
func (c *chain) oracle(ctx context.Context, p *program) error {
	txns, err := p.forward(ctx)
	if err != nil {
		return err
	}
	after, err := look(c.dir)
	if err != nil {
		return err
	}
	var wrong []error
	if d := difference(c.before, after); d != "" {
		wrong = append(wrong, fmt.Errorf("it is not as before: %s", d))
	}
	left := 0
	for _, t := range txns {
		n, err := c.judgeTxn(t)
		left += n
		wrong = append(wrong, err)
	}
	return errors.Join(append(wrong, c.unannounced(txns), c.promises(ctx, p), c.unknowns(left))...)
}

// judgeTxn compares the calls of one transaction with the service. It returns
// the number of its in-doubt calls.
func (c *chain) judgeTxn(t *revert.Txn) (unknown int, wrong error) {
	told := map[string]bool{}
	for _, call := range t.EffectiveCalls() {
		told[call.Ref.Call] = true
	}
	wants := revert.TxnReverted
	switch {
	case len(told) > 0:
		wants = revert.TxnRevertedPartial
	case t.End == record.KindCommitted && len(t.RevertedBy) == 0:
		wants = revert.TxnCommitted // there was nothing to revert
	}
	if t.State() != wants {
		wrong = fmt.Errorf("transaction %s is %s, and something is left of %d calls", t.ID, t.State(), len(told))
	}
	for _, call := range t.Calls {
		there, times := c.effect(call)
		switch doubt := call.Phase == revert.PhaseUnknown; {
		case call.Phase == revert.PhaseStarted:
			wrong = errors.Join(wrong, fmt.Errorf("%s %s has no end", call.Tool.Name, call.Ref.Call))
		case times > 1:
			wrong = errors.Join(wrong, fmt.Errorf("%s %s had its effect %d times", call.Tool.Name, call.Ref.Call, times))
		case there && !told[call.Ref.Call]:
			wrong = errors.Join(wrong, fmt.Errorf("%s %s is said to be undone, and its effect is there", call.Tool.Name, call.Ref.Call))
		case !there && told[call.Ref.Call] && !doubt:
			wrong = errors.Join(wrong, fmt.Errorf("%s %s is said to be left, and nothing is: %+v", call.Tool.Name, call.Ref.Call, call.Reversal))
		case doubt && !c.blind && call.Tool.Name != "ping" && call.Tool.Name != "mail" && call.Tool.Name != "plain":
			wrong = errors.Join(wrong, fmt.Errorf("%s %s is unknown, and could be known: %+v", call.Tool.Name, call.Ref.Call, call.Unknown))
		case doubt:
			unknown++
		}
	}
	return unknown, wrong
}

// effect reports whether an effect of a call is present, and how often it was
// made. Files and rows are compared as a whole elsewhere.
func (c *chain) effect(call *revert.Call) (there bool, times int) {
	items, made, posts := c.service.now()
	switch {
	case call.Started == nil:
		return false, 0
	case call.Tool.Name == "ping", call.Tool.Name == "mail":
		times = posts[call.Started.Key]
		return times > 0, times
	case call.Tool.Name == "change":
		return items["old"] != "before", 0
	case call.Tool.Name != "keyed" && call.Tool.Name != "plain":
		return false, 0
	}
	var in struct{ Name string }
	_ = json.Unmarshal(call.Started.Input, &in)
	for _, name := range items {
		there = there || name == in.Name
	}
	return there, made[in.Name]
}

// unannounced finds effects of calls that were not announced.
func (c *chain) unannounced(txns []*revert.Txn) error {
	_, made, posts := c.service.now()
	for _, t := range txns {
		for _, call := range t.Calls {
			if call.Started == nil {
				continue
			}
			delete(posts, call.Started.Key)
			var in struct{ Name string }
			_ = json.Unmarshal(call.Started.Input, &in)
			delete(made, in.Name)
		}
	}
	if len(made)+len(posts) > 0 {
		return fmt.Errorf("effects that no call announced: %v %v", made, posts)
	}
	return nil
}

// unknowns checks that at most as many calls are in doubt as were in flight:
// one for each worker.
func (c *chain) unknowns(n int) error {
	if most := len(c.order.Plan); n > most {
		return fmt.Errorf("%d calls are unknown, of %d workers", n, most)
	}
	return nil
}

// promises compares the output before each kill with the journal.
func (c *chain) promises(ctx context.Context, p *program) error {
	var wrong []error
	for line := range strings.Lines(c.output) {
		word := strings.Fields(line)
		if len(word) < 2 || word[0] == "head" {
			continue
		}
		t, err := revert.Load(ctx, p.journal, word[1])
		if err != nil {
			return fmt.Errorf("told %q: %w", line, err)
		}
		kept := true
		switch word[0] {
		case "committed":
			kept = t.End == record.KindCommitted
		case "reverted", "revert":
			kept = t.End == record.KindAborted || len(t.RevertedBy) > 0
		case "call":
			call, there := t.Call(word[2])
			kept = word[3] != "done" && word[3] != "held" || there && (call.Done != nil || word[3] == "held" && call.Held != nil)
		}
		if !kept {
			wrong = append(wrong, fmt.Errorf("it was told %q, and the journal says otherwise", strings.TrimSpace(line)))
		}
	}
	return errors.Join(wrong...)
}

// fsck checks the journal, also against every printed head.
func (c *chain) fsck(ctx context.Context) error {
	var found []string
	options := revert.FsckOptions{Found: func(p revert.Problem) { found = append(found, p.What) }}
	for line := range strings.Lines(c.output) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "head "); ok {
			head, err := journal.ParseHead(text)
			if err != nil {
				return err
			}
			options.Kept = head
		}
	}
	if _, err := sqlite.Fsck(ctx, filepath.Join(c.dir, "state"), options); err != nil {
		return fmt.Errorf("fsck: %w: %v", err, found)
	}
	return nil
}
